# kinformerd in a small image: docker build -t kinformerd:0.2.0 .
# Without a registry, and without Docker: make image, which makes the same files, and reads here how they are run.
FROM debian:12 AS build
WORKDIR /src
COPY scripts/install-deps.sh scripts/make-image.py scripts/
RUN apt-get update && scripts/install-deps.sh build image
COPY Makefile Dockerfile LICENSE ./
COPY src src
RUN make -j"$(nproc)" MODE=release build/release/bin/kinformerd && scripts/make-image.py --tree build/release/bin/kinformerd /image

FROM scratch
COPY --from=build /image /
LABEL org.opencontainers.image.title="kinformerd"
LABEL org.opencontainers.image.description="A cache of Kubernetes objects that serves the Kubernetes API"
LABEL org.opencontainers.image.version="0.2.0"
LABEL org.opencontainers.image.licenses="Apache-2.0"
# A number, so that runAsNonRoot can be checked.
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/kinformerd"]
