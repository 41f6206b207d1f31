"""Requests that kinformerd and the API server are both asked, heads that both are sent, and where their answers may
differ."""

from urllib.parse import quote

V = "/api/v1/pods?"
N = "/api/v1/namespaces/default/pods"


# Nobody can do this, and so it takes no token to be told.
NOTHING = [(method, target, None) for method, target in (
    *((method, target) for method in ("GET", "POST", "PUT", "PATCH", "DELETE") for target in (
        "/api/v1/nope", "/api/v1/nope/x", "/apis/nope/v1/x", "/apis/apps/v1/nope", "/api/v1/pods/x",
        "/api/v1/namespaces/default/nodes", "/api/v1/namespaces/default/pods/x/nope",
        "/apis/test.kinformer.dev/v1/namespaces/default/nope", "/apis/test.kinformer.dev/v9/gadgets")),
    *((method, target) for method in ("PUT", "PATCH") for target in (
        "/api/v1/pods", "/api/v1/namespaces/default/pods", "/api/v1/namespaces", "/apis/apps/v1/deployments")),
    ("POST", "/api/v1/pods"), ("DELETE", "/api/v1/pods"), ("DELETE", "/api/v1/namespaces"), ("POST", "/api"),
    ("DELETE", "/apis/apps/v1"), ("POST", "/version"), ("POST", "/api/v1/namespaces/default/pods/x"),
    ("PUT", "/api/v1/namespaces/default/pods/x/eviction"), ("DELETE", "/api/v1/namespaces/default/pods/x/log"),
    ("POST", "/api/v1/componentstatuses"), ("DELETE", "/api/v1/componentstatuses/x"),
)]


def rows():
    """(method, target, Accept or None)"""
    rows = []

    def get(*targets):
        rows.extend(("GET", target, None) for target in targets)

    # resourceVersion
    for rv in ("%20", "0x1", "1.5", "1e3", "+1", "%2B1", "-0", "00", "007", "18446744073709551615",
                "18446744073709551616", "9223372036854775808", "%C3%A9", "1%20", "%22"):
        get(V + "resourceVersion=" + rv, V + "watch=1&timeoutSeconds=1&resourceVersion=" + rv)
        get(N + "/x?resourceVersion=" + rv)
    for rv in ("", "0", "5", "abc"):
        for match in ("", "Exact", "NotOlderThan", "Foo", "exact", "%20"):
            for more in ("", "&continue=abc", "&limit=2", "&sendInitialEvents=true", "&sendInitialEvents=false",
                        "&sendInitialEvents="):
                get(V + f"resourceVersion={rv}&resourceVersionMatch={match}{more}")
                get(V + f"watch=1&timeoutSeconds=1&resourceVersion={rv}&resourceVersionMatch={match}{more}")
    for key in ("limit", "timeoutSeconds"):
        for v in ("-1", "-9223372036854775808", "-9223372036854775809", "9223372036854775807", "9223372036854775808",
                    "1.0", "0x10", "1_000", "%2B5", "%20", "5%20", "%00", "abc%22def", "%C3%A9", "\\n", "1e2", "٣"):
            get(V + f"{key}=" + quote(v, safe="%"))
    for v in ("1s", "1h1m", "-1s", "1.5h", ".5s", ".s", "s", "1d", "1 s", "1S", "9999999999h", "0", "00", "+1s",
                "1s1", "--1s"):
        # Of few objects: a server that is busy must get there in half a second.
        get(N + "?timeout=" + v.replace("+", "%2B").replace(" ", "%20"),
                    N + "?watch=1&timeoutSeconds=1&timeout=" + v.replace("+", "%2B").replace(" ", "%20"))
    for v in ("maybe", "TRUE", "True", "2", "no", "", "F", "f", "FALSE", "False", "%20"):
        get(N + "?timeoutSeconds=1&watch=" + v, N + "?watch=1&timeoutSeconds=1&allowWatchBookmarks=" + v,
                    N + "?watch=1&timeoutSeconds=1&resourceVersionMatch=NotOlderThan&sendInitialEvents=" + v)
    get(N + "?watch&timeoutSeconds=1", N + "?watch=0&watch=1&resourceVersionMatch=Foo", N + "?limit=1&limit=abc",
                N + "?limit=abc&limit=1", N+"?limit&limit=1", N+"?LIMIT=abc", N+"?Limit=abc", N + "?lim%69t=abc",
                N+"?limit=%61", N+"?limit%3Dabc", N+"?a=1;limit=abc", N+"?limit=abc;", N+"?%zz=1", N+"?limit=%z1",
                N+"?limit=1%", N+"?limit=a%2", N+"?=abc", N+"?&&&limit=abc", N+"?limit==5", N+"?limit=5#frag",
                N+"??limit=abc")
    for s in ("a", "!a", "a,b", "a=b,", "a in", "a in (", "a in )", "a in ()", "a in (,)", "a in (a,,b)",
                "a in (a b)", "a notin (b", "a===b", "a=!b", "a!b", "a!==b", "a>1", "a<", "a>", "a>1.5", "a>b,",
                "(a)", "in", "in in (in)", "notin", "a,!", "!!a", "! a", "a=b c", "a = b", " a", "a ", "\ta",
                "a.b/c=d", "/a", "a/", "a/b/c", "-a", "a-", "a=-b", "a=b-", "a=b/c", "a=b*", "*", "a=\"b\"",
                "'a'='b'", "é=1", "a=é", "a\x01b", "x" * 64, "a=" + "x" * 64, "x" * 254 + "/a", "A/b", "a_b/c",
                "a.b_c=d", "a=b=c", "a==", "a!=", "a=", "=", "==", "!=", ",", ",,", "a,,b", "a;b", "a&b",
                "a in (b) c", "a in (b)c", "a in(b)", "a notin(b),c", "a>1,b<2", "a>-1", "a>+1",
                "a>9223372036854775808", "a in (b", "a in b)", "kubernetes.io/x in (a,b),y notin (z)", "gt", "a gt 1",
                "exists", "!-a", "a//b", "a=b,-c", "-a in (", "-x,", "a in (-b)", "a in (c,-b)", "a in (,-b)",
                "a in (b,b*)", "a notin (b*)", "a in (-b,-c)", "x.-/b"):
        q = quote(s)
        get("/api/v1/namespaces/default/configmaps?labelSelector=" + q)
    for s in ("metadata.name", "metadata.name=", "metadata.name==x", "metadata.name!=x", "metadata.name!x",
                "metadata.name=x,", ",", ",,", "metadata.name=x,,metadata.namespace=y", "=x", "!=x", "==", "=", "!=",
                "metadata.name = x", " metadata.name=x", "metadata.name=x ", "metadata.name=a b",
                "metadata.name=a\\,b", "metadata.name=a\\=b", "metadata.name=a\\", "metadata.name=a\\b",
                "metadata.name=a=b", "metadata.name===b", "metadata.name=a!=b", "metadata.name in (a)",
                "metadata.Name=x", "metadata.uid=x", "metadata.labels.a=b", "spec.nodeName=", "spec.nodeName=a\x01",
                "status.phase=é", "spec.containers[0].name=x", "metadata.name=x;y", "\\metadata.name=x",
                "metadata.name=" + "x" * 300, "metadata.namespace=nope", "status.podIP=1.2.3.4",
                "spec.hostNetwork=maybe", "x" * 1000 + "=1", "a,b", "a=b,c"):
        q = quote(s)
        get(N + "?fieldSelector=" + q, "/apis/apps/v1/deployments?fieldSelector=" + q)
    for p in ("/api/v1/pods/", "/api/v1/namespaces/default/pods/", "/api/v1/namespaces/default/pods/x/",
                "/api/v1/namespaces//pods", "/api/v1/namespaces/", "/api/v1/namespaces/default/",
                "/api/v1//namespaces/default", "/api/v1/namespaces/default//pods", "/API/v1/pods", "/api/V1/pods",
                "/api/v1/PODS", "/api/v1/Pods", "/api/v1/pod", "/api/v1/namespaces/Default/pods",
                "/api/v1/namespaces/a_b/pods", "/api/v1/namespaces/-/pods",
                "/api/v1/namespaces/" + "x" * 300 + "/pods", "/api/v1/namespaces/default/pods/" + "x" * 300,
                "/api/v1/namespaces/default/pods/A_B", "/api/v1/namespaces/default/pods/a%20b",
                "/api/v1/namespaces/default/pods/a%22b", "/api/v1/namespaces/default/pods/a+b",
                "/api/v1/namespaces/default/pods/%C3%A9", "/api/v1/namespaces/default/pods/a;b",
                "/api/v1/namespaces/default/pods/a%3Fb", "/api/v1/namespaces/default/pods/a%23b",
                "/api/v1/namespaces/default/pods/...", "/api/v1/namespaces/default/pods/.a",
                "/api/v1/namespaces/default/pods/a..b", "/api/v1/namespaces/default/namespaces",
                "/api/v1/namespaces/default/namespaces/default", "/api/v1/nodes/", "/api/v1/pods/default/x",
                "/api/v1/pods/x/y/z", "/apis/apps/v1/pods", "/api/v1/deployments", "/apis/v1/pods",
                "/api/apps/v1/deployments", "/apis//v1/pods", "/apis/apps//deployments", "/apis/apps/v1/",
                "/apis/apps/", "/apis/", "/apis/apps/v1beta1/deployments", "/apis/batch/v2/jobs",
                "/apis/test.kinformer.dev/v2/gadgets", "/apis/test.kinformer.dev/v1/gadgets/x",
                "/apis/test.kinformer.dev/v1/namespaces/default/gadgets/x/status",
                "/apis/test.kinformer.dev/v1/namespaces/default/gadgets/x/scale",
                "/apis/test.kinformer.dev/v1/namespaces/default", "/apis/test.kinformer.dev/v1/",
                "/apis/TEST.kinformer.dev/v1/gadgets", "/version/x", "/version?x=1", "/api/v1/namespaces/default/x",
                "/api/v1/namespaces/nope", "/api/v1/watch", "/api/v1/proxy", "/api/v1/namespaces/default/pods/x/nope",
                "/api/v1/componentstatuses/x/y", "/healthz?x", "/livez/", "/readyz/", "/metrics/", "/metrics/x",
                "/debug", "/debug/", "/favicon.ico", "/apis/apps/v1/namespaces/default/deployments/x/nope",
                "/api/v1/namespaces/default/configmaps/x/status", "/api/v1/namespaces/x/status/y",
                "/api/v1/namespaces/x/status?limit=abc", "/api/v1/namespaces/x/finalize",
                "/api/v1/namespaces//configmaps", "/api/v1/namespaces//configmaps?limit=abc",
                "/api/v1/namespaces//configmaps?watch=1&timeoutSeconds=1", "/api/v1/namespaces//configmaps/x",
                "/api/v1/namespaces//pods/x/log", "/api/v1/namespaces//pods/", "/api/v1/namespaces//pods//",
                "/api/v1/namespaces///pods", "/api/v1/namespaces//", "/api/v1/namespaces//namespaces",
                "/api/v1/namespaces//namespaces/default", "/api/v1/namespaces//nodes", "/api/v1/namespaces//nope",
                "/apis/apps/v1/namespaces//deployments", "/apis/apps/v1/namespaces//deployments/x",
                "/apis/test.kinformer.dev/v1/namespaces//gadgets", "/apis/test.kinformer.dev/v1/namespaces//gadgets/x",
                "/apis//v1/namespaces//pods", "/api/v1/namespaces/default/namespaces//x",
                "/api/v1/pods/namespaces//x", "/api/v1/pods//", "/api/v1/namespaces/default/pods//",
                "/api/v1/namespaces/default/pods/x//", "/api/v1//", "/api//", "/apis/apps//", "/apis/apps/v1//", "/apis//",
                "//", "/livez//", "/metrics//", "/version//", "/api/v1/namespaces/" + "x" * 300,
                "/api/v1/namespaces/default/configmaps/" + "x" * 900,
                "/api/v1/namespaces/default/configmaps/" + "%22" * 300,
                "/api/v1/namespaces?watch=1&timeoutSeconds=-1", "/api/v1/namespaces?watch=1&timeoutSeconds=-1"
                "&resourceVersion=0", "/api/v1/namespaces/default?timeoutSeconds=-1"):
        get(p)
    for m in ("HEAD", "OPTIONS", "TRACE", "get", "Get", "CONNECT", "FOO", "LIST", "WATCH"):
        for p in ("/api/v1/pods", N + "/x", "/api", "/version", "/nope", "/apis/nope/v1/x", "/api/v1/nope"):
            rows.append((m, p, None))
    rows.extend(NOTHING)
    for a in ("application/json", "application/JSON", "*/*", "application/*", "*", "", " ", ",", ";", "text/html",
                "application/json;q=0", "application/json;q=abc", "application/json;as=Table",
                "application/json;as=Table;v=v2;g=meta.k8s.io", "application/json;as=Table;v=v1;g=x",
                "application/json;as=Table;v=v1beta1;g=meta.k8s.io", "application/json;as=table;v=v1;g=meta.k8s.io",
                "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
                "application/json;as=PartialObjectMetadataList;v=v1beta1;g=meta.k8s.io",
                "application/json;as=PartialObjectMetadataList;v=v2;g=meta.k8s.io",
                "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
                "application/json;as=PartialObjectMetadata;v=v2;g=meta.k8s.io", "application/json;as=Foo",
                "application/json;;", "application/json;stream=watch", "application/json; charset=\"utf-8\"",
                "application/json;as=\"Table\";v=v1;g=meta.k8s.io", "text/plain, application/json;q=0.1", "image/*",
                "application/json/x", "application", "é"):
        rows.append(("GET", "/api/v1/namespaces/default/configmaps", a.encode().decode("latin1")))
        rows.append(("GET", "/api/v1/namespaces/default", a.encode().decode("latin1")))
        rows.append(("GET", "/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=1",
                    a.encode().decode("latin1")))
        rows.append(("GET", "/api", a.encode().decode("latin1")))
    for s in ("x", "shardRange(object.metadata.uid,'0x0000000000000000','0x8000000000000000')", "%20",
                "shardRange()"):
        get(N + "?shardSelector=" + s, N + "?watch=1&timeoutSeconds=1&shardSelector=" + s)
    return rows


# Code and reason are the same, the words are not: (expression for "METHOD TARGET Accept: ACCEPT", why).
OTHER_WORDS = [
    (r"continue=abc", "tokens are the daemon's own, and so is what is wrong with them"),
    (r"=%00", "a NUL is refused wherever it stands"),
    (r"labelSelector=(a/|a%20in%20%28-b%2C-c%29) ", "of several faults the first is told"),
    (r"Accept: .", "JSON is the only representation"),
]

# Whether the API server has this version depends on how long it has been running.
OLD_VERSION = r"resourceVersion=5&resourceVersionMatch=(Exact(&limit=2)?|&limit=2) "

# The code is another one: (expression, the daemon's code, why).
OTHER_CODES = [
    (OLD_VERSION, 410, "only versions that are held"),
    (r"/apis// ", 200, "slashes at the end are nothing, as they are behind all other paths"),
    (r"/api/v1/nodes/", 403, "not in this cache"),
    (r"/gadgets/x/(status|scale)", 404, "subresources of custom resources that have none"),
    (r"/api/v1/(watch|proxy) ", 404, "verbs in paths are not served"),
    (r"/namespaces/x/(status\?limit=abc|status|finalize) ", 403, "no subresource is served"),
]


def heads():
    """(name, bytes); what comes behind each is read as the next request, or not at all."""
    host = b"Host: localhost"

    def head(*lines, first=b"GET /livez HTTP/1.1", body=b""):
        return b"".join(line + b"\r\n" for line in (first, *lines)) + b"\r\n" + body

    def of_first(**firsts):
        return [(name.replace("_", " "), head(host, first=first)) for name, first in firsts.items()]

    def of_line(**lines):
        return [(name.replace("_", " "), head(host, line, b"Y: z")) for name, line in lines.items()]

    def of_length(*lines, body=b""):
        return [(b" and ".join(lines).decode(), head(host, *lines, body=body))]

    chunks = b"2\r\nab\r\n0\r\n\r\n"
    return [
        ("plain", head(host)), ("bare LF", b"GET /livez HTTP/1.1\nHost: localhost\nX: y\n\n"),
        ("empty line in front", b"\r\n" + head(host)), ("long", head(host, b"X: " + b"y" * 9000)),
        ("NUL before bare LF", b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: a\0\nY: z\r\n\r\n"),
        ("NUL as carriage return", b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\0\nY z\r\n\r\n"),
        ("NUL at the end", head(host, b"X: a\0")), ("NUL in front of the end", head(host, b"X: \0")),
        ("goes on at the end", head(host, b"X: a", b" b")), ("goes on in front", head(b" X: a", host)),
        ("no host", head(b"X: y")), ("no host of 1.0", head(first=b"GET /livez HTTP/1.0")),
        ("two hosts", head(host, host)), ("another host", head(host, b"Host: 127.0.0.1")),
        ("two hosts of 1.0", head(host, host, first=b"GET /livez HTTP/1.0")), ("bad host", head(b"Host: a b")),
        ("host goes on", head(host, b" b")), ("blank behind the host", head(host + b" ")), ("no colon in front", head(b"nonsense", host)),
        ("chunks of 1.0", head(host, b"Transfer-Encoding: chunked", first=b"GET /livez HTTP/1.0", body=chunks)),
    ] + of_line(
        no_blank=b"X:y", blanks=b"X: \t y \t", no_value=b"X:", tab=b"X: a\tb", not_ASCII="X: é".encode(),
        blank_before_colon=b"X : y", tab_before_colon=b"X\t: y", blank_in_name=b"X Y: y", no_name=b": y",
        bracket_in_name=b"X(: y", name_not_ASCII="é: y".encode(), no_colon=b"nonsense", NUL=b"X: a\0b",
        NUL_behind=b"X: a\0", NUL_in_name=b"X\0Y: a", goes_on=b"X: a\r\n b", goes_on_with_tab=b"X: a\r\n\tb",
        goes_on_with_nothing=b"X: a\r\n  ", CR=b"X: a\rb", CR_behind=b"X: a\r", CR_in_name=b"X\rY: a",
        control=b"X: \x01", DEL=b"X: \x7f",
    ) + of_first(
        NUL_in_target=b"GET /livez\0x HTTP/1.1", NUL_in_version=b"GET /livez HTTP/1.1\0",
        NUL_in_method=b"GE\0T /livez HTTP/1.1", two_blanks=b"GET  /livez HTTP/1.1",
        two_blanks_behind=b"GET /livez  HTTP/1.1", blank_in_target=b"GET /livez x HTTP/1.1",
        blank_at_the_end=b"GET /livez HTTP/1.1 ", blank_in_front=b" GET /livez HTTP/1.1",
        tabs=b"GET\t/livez\tHTTP/1.1", tab_in_target=b"GET /livez\tx HTTP/1.1",
        control_in_target=b"GET /livez\x01 HTTP/1.1", DEL_in_query=b"GET /livez?\x7f HTTP/1.1",
        no_target=b"GET  HTTP/1.1", no_version=b"GET /livez", version_1_2=b"GET /livez HTTP/1.2",
        version_1_10=b"GET /livez HTTP/1.10", version_2=b"GET /livez HTTP/2.0", version_0=b"GET /livez HTTP/0.9",
        small_version=b"GET /livez http/1.1", bracket_in_method=b"G(T /livez HTTP/1.1",
        method_not_ASCII="GÉT /livez HTTP/1.1".encode(),
    ) + [row for lines in (
        (b"Content-Length: 2", b"Content-Length: 3"), (b"Content-Length: 2", b"Content-Length: 2"),
        (b"Content-Length: 2, 2",), (b"Content-Length: +2",), (b"Content-Length: 0x2",), (b"Content-Length: -1",),
        (b"Content-Length: ",), (b"Content-Length: 2 ",), (b"Content-Length: " + b"9" * 30,), (b"Content-Length : 2",),
    ) for row in of_length(*lines, body=b"ab")] + [row for lines in (
        (b"Transfer-Encoding: chunked",), (b"Transfer-Encoding: Chunked",), (b"Transfer-Encoding: chunked, chunked",),
        (b"Transfer-Encoding: gzip, chunked",), (b"Transfer-Encoding: identity",), (b"Transfer-Encoding:",),
        (b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"),
        (b"Transfer-Encoding: chunked", b"Content-Length: 2"), (b"Content-Length: 2", b"Transfer-Encoding: chunked"),
    ) for row in of_length(*lines, body=chunks)]


# The codes are others, of the head and of what comes behind it: (expression for the name, the daemon's, why).
OTHER_HEADS = [
    (r"empty line in front", [200, 200], "RFC 9112, 2.2: to be ignored"),
    (r"NUL before bare LF", [200, 200], "not seen; the value is the one in front of it"),
    (r"NUL as carriage return", [200, 400], "not seen; it is the empty line"),
    (r"blank behind the host", [400], "the library leaves it there"),
    (r"goes on", [400], "RFC 9112, 5.2: to be refused, or read as one value"),
    (r"Length: 2 and Content-Length: 2", [400], "RFC 9112, 6.3: may be refused"),
    (r"chunked and Content-Length|Length: 2 and Transfer", [400], "RFC 9112, 6.1: may be refused"),
    (r"Content-Length: 9+", [413, 413], "the library's: a number beyond 64 bits; twice, and it closes"),
    (r"Content-Length: (2, 2|\+2|0x2|-1|2 |)$", [400, 400], "the library's: twice, and it closes"),
    (r"blank in front|tabs", [], "the library closes without an answer to a line that has no blank behind a method"),
]
