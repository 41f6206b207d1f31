# shellcheck shell=bash
#
# Certificates, tokens and kubeconfigs of one cluster folder, sourced by cluster.sh. Everything is
# made anew for each cluster and is worth nothing outside it.
# shellcheck disable=SC2154 # dir and server are cluster.sh's

ca_config()
{
    cat <<EOF
[ca]
default_ca = cluster
[cluster]
database = $dir/pki/index
rand_serial = yes
unique_subject = no
new_certs_dir = $dir/pki/issued
certificate = $dir/pki/ca.crt
private_key = $dir/pki/ca.key
default_md = sha256
policy = any
[any]
organizationName = optional
commonName = supplied
[serving]
extendedKeyUsage = serverAuth
subjectAltName = IP:127.0.0.1, IP:::1, IP:10.0.0.1, DNS:localhost, DNS:kubernetes, DNS:kubernetes.default, DNS:kubernetes.default.svc
[client]
extendedKeyUsage = clientAuth
EOF
}

# make_authority NAME
make_authority()
{
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -days 3650 \
        -subj "/CN=$1" -addext keyUsage=critical,keyCertSign,cRLSign,digitalSignature \
        -keyout "$dir/pki/$1.key" -out "$dir/pki/$1.crt"
}

# issue NAME KIND SUBJECT NOT_BEFORE NOT_AFTER, the times as date(1) understands them.
# `openssl ca`, because it alone sets both times in every OpenSSL 3.
issue()
{
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -subj "$3" \
        -keyout "$dir/pki/$1.key" -out "$dir/pki/$1.csr"
    openssl ca -batch -notext -config "$dir/pki/ca.cnf" -extensions "$2" \
        -startdate "$(date -u -d "$4" +%Y%m%d%H%M%SZ)" -enddate "$(date -u -d "$5" +%Y%m%d%H%M%SZ)" \
        -in "$dir/pki/$1.csr" -out "$dir/pki/$1.crt"
    rm "$dir/pki/$1.csr"
}

make_certificates()
{
    mkdir -p "$dir/pki/issued"
    : >"$dir/pki/index"
    ca_config >"$dir/pki/ca.cnf"
    make_authority ca
    make_authority wrong-ca
    cp "$dir/pki/ca.crt" "$dir/pki/trusted.crt"
    issue serving serving /CN=kube-apiserver '1 day ago' '3650 days'
    issue expired-serving serving /CN=kube-apiserver '30 days ago' '1 day ago'
    issue admin client /O=system:masters/CN=admin '1 day ago' '3650 days'
    issue user client /O=developers/CN=user '1 day ago' '3650 days'
    issue expired-client client /O=system:masters/CN=admin '30 days ago' '1 day ago'
    openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$dir/pki/service-account.key"
    openssl pkey -in "$dir/pki/service-account.key" -pubout -out "$dir/pki/service-account.pub"
}

# Each pair is made beside the one in use, which is then replaced in a moment.
renew()
{
    issue "$1.new" "$2" "$3" '1 day ago' '3650 days'
    mv "$dir/pki/$1.new.key" "$dir/pki/$1.key"
    mv "$dir/pki/$1.new.crt" "$dir/pki/$1.crt"
}

renew_certificates()
{
    renew serving serving /CN=kube-apiserver
    renew user client /O=developers/CN=user
}

# trust FILE...: whose certificates the apiserver takes, and its clients, from now on.
trust()
{
    (cd "$dir/pki" && cat "$@" >trusted.new && mv trusted.new trusted.crt)
    make_kubeconfigs
}

serves_trusted()
{
    openssl s_client -connect "${server#https://}" -CAfile "$dir/pki/ca.crt" -verify_return_error </dev/null
}

# In the order in which nobody is refused: all trust both authorities before there are certificates of
# the new one, and the old one until there are none of its own.
renew_authority()
{
    local name tries=$((ready_seconds * 5))

    name=authority-$(openssl rand -hex 4)
    make_authority "$name"
    trust "$name.crt" ca.crt
    mv "$dir/pki/$name.key" "$dir/pki/ca.key"
    mv "$dir/pki/$name.crt" "$dir/pki/ca.crt"
    renew admin client /O=system:masters/CN=admin
    make_kubeconfigs
    wait_ready
    renew_certificates
    until serves_trusted; do
        ((tries-- > 0)) || fail "the apiserver does not take its new certificate"
        sleep 0.2
    done
    trust ca.crt
}

# A token file for each user, too: what a mounted or rotated token looks like to a client.
make_tokens()
{
    local user

    mkdir -p "$dir/tokens"
    for user in admin reader kinformer nobody; do
        echo "$user-$(openssl rand -hex 16)" >"$dir/tokens/$user"
    done
    cat >"$dir/tokens.csv" <<EOF
$(<"$dir/tokens/admin"),token-admin,token-admin,"system:masters"
$(<"$dir/tokens/reader"),reader,reader,"readers"
$(<"$dir/tokens/kinformer"),kinformer,kinformer,"daemons"
$(<"$dir/tokens/nobody"),nobody,nobody,
EOF
}

inline()
{
    base64 -w 0 "$dir/pki/$1"
}

# kubeconfig NAME CLUSTER_NAME CLUSTER_FIELDS USER_FIELDS [NAMESPACE], the fields indented by four.
kubeconfig()
{
    cat >"$dir/kubeconfig.new" <<EOF
apiVersion: v1
clusters:
- cluster:
$3
    server: $server
  name: $2
contexts:
- context:
    cluster: $2
${5:+    namespace: $5
}    user: $2
  name: $2
current-context: $2
kind: Config
preferences: {}
users:
- name: $2
  user:
$4
EOF
    mv "$dir/kubeconfig.new" "$dir/$1.kubeconfig"
}

# Written at each start, since the port is new, and for a new authority.
make_kubeconfigs()
{
    local ca admin

    ca="    certificate-authority-data: $(inline trusted.crt)"
    admin="    client-certificate-data: $(inline admin.crt)
    client-key-data: $(inline admin.key)"

    kubeconfig admin kind-test "$ca" "$admin"
    kubeconfig admin-files minikube "    certificate-authority: $dir/pki/trusted.crt
    extensions:
    - extension:
        provider: minikube.sigs.k8s.io
      name: cluster_info" "    client-certificate: $dir/pki/admin.crt
    client-key: $dir/pki/admin.key" default
    kubeconfig admin-token test "$ca" "    token: $(<"$dir/tokens/admin")"
    kubeconfig user test "$ca" "    client-certificate-data: $(inline user.crt)
    client-key-data: $(inline user.key)"
    kubeconfig user-files test "    certificate-authority: $dir/pki/trusted.crt" "    client-certificate: $dir/pki/user.crt
    client-key: $dir/pki/user.key"
    kubeconfig token test "$ca" "    token: $(<"$dir/tokens/reader")"
    kubeconfig token-file test "$ca" "    tokenFile: $dir/tokens/reader"
    kubeconfig kinformer test "$ca" "    token: $(<"$dir/tokens/kinformer")"
    kubeconfig nobody test "$ca" "    token: $(<"$dir/tokens/nobody")"
    kubeconfig bad-token test "$ca" "    token: no-such-token"
    kubeconfig wrong-ca test "    certificate-authority-data: $(inline wrong-ca.crt)" "$admin"
    kubeconfig wrong-name test "$ca
    tls-server-name: another.example.com" "$admin"
    kubeconfig expired-cert test "$ca" "    client-certificate-data: $(inline expired-client.crt)
    client-key-data: $(inline expired-client.key)"
}
