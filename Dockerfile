# kinformerd in a small image: docker build -t kinformerd:0.2.0 .
FROM debian:12 AS build
WORKDIR /src
COPY scripts/install-deps.sh scripts/
RUN apt-get update && scripts/install-deps.sh build
COPY Makefile ./
COPY src src
RUN make -j"$(nproc)" MODE=release build/release/bin/kinformerd && strip build/release/bin/kinformerd

FROM debian:12-slim
# What the program is linked with (tests/integration/test_manifests.py compares), authorities, and curl, for probes
# inside of a pod.
RUN apt-get update \
 && apt-get install -y --no-install-recommends \
      ca-certificates curl libcjson1 libcurl4 libgnutls30 libmicrohttpd12 libssl3 libyaml-0-2 libzstd1 zlib1g \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/build/release/bin/kinformerd /usr/local/bin/
COPY LICENSE /usr/share/doc/kinformerd/
# A number, so that runAsNonRoot can be checked.
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/kinformerd"]
