{{- define "kinformerd.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "kinformerd.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains (include "kinformerd.name" .) .Release.Name }}
{{- .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "kinformerd.name" .) | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* Of what every namespace shares. */}}
{{- define "kinformerd.clusterName" -}}
{{- printf "%s:%s" .Release.Namespace (include "kinformerd.fullname" .) }}
{{- end }}

{{- define "kinformerd.selectorLabels" -}}
app.kubernetes.io/name: {{ include "kinformerd.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kinformerd.labels" -}}
{{ include "kinformerd.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "kinformerd.serviceAccountName" -}}
{{- default (ternary (include "kinformerd.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name }}
{{- end }}

{{- define "kinformerd.subject" -}}
kind: ServiceAccount
name: {{ include "kinformerd.serviceAccountName" . }}
namespace: {{ .Release.Namespace }}
{{- end }}

{{- define "kinformerd.tlsSecretName" -}}
{{- default (printf "%s-tls" (include "kinformerd.fullname" .)) .Values.tls.secretName }}
{{- end }}

{{/* Not empty: clients are served over the network. */}}
{{- define "kinformerd.listens" -}}
{{- if and .Values.listen (ne .Values.mode "sidecar") }}yes{{ end }}
{{- end }}

{{/* The name of the port for probes, and of the Service's. */}}
{{- define "kinformerd.port" -}}
{{- if include "kinformerd.listens" . }}https{{ else }}health{{ end }}
{{- end }}

{{/* kinformerd.yaml: what the mode is, and what the values say besides. */}}
{{- define "kinformerd.config" -}}
{{- $config := dict }}
{{- if eq .Values.mode "sidecar" }}
{{- $config = dict "listen" (list "127.0.0.1:8001" "unix:/run/kinformer/api.sock") "healthListen" ":8081" }}
{{- else if .Values.listen }}
{{- $tls := dict "certFile" "/etc/kinformer-tls/tls.crt" "keyFile" "/etc/kinformer-tls/tls.key" }}
{{- $config = dict "listen" (list ":8443") "tls" $tls "auth" "delegated" }}
{{- else }}
{{- $config = dict "healthListen" ":8081" }}
{{- end }}
{{- if eq .Values.mode "statefulset" }}
{{- $config = merge $config (dict "shards" "$(SHARDS)" "shard" "$(POD_INDEX)") }}
{{- if .Values.config.handlers }}
{{- $_ := set $config "lease" (include "kinformerd.fullname" .) }}
{{- end }}
{{- end }}
{{- toYaml (mergeOverwrite $config (deepCopy .Values.config)) }}
{{- end }}

{{/* "deployments.v1.apps" and "deployments.apps": the name, and the group. */}}
{{- define "kinformerd.group" -}}
{{- $group := rest (splitList "." .) }}
{{- if and $group (regexMatch "^v[0-9]+((alpha|beta)[0-9]+)?$" (first $group)) }}
{{- $group = rest $group }}
{{- end -}}
{{ join "." $group }}
{{- end }}

{{- define "kinformerd.rule" -}}
- apiGroups: [{{ include "kinformerd.group" . | quote }}]
  resources: [{{ first (splitList "." .) | quote }}]
  verbs: [list, watch]
{{- end }}

{{/* The name of a custom resource's definition; empty for a resource of Kubernetes' own. */}}
{{- define "kinformerd.definition" -}}
{{- $group := include "kinformerd.group" . }}
{{- $own := "^(admissionregistration|apiextensions|apiregistration|authentication|authorization|certificates|coordination|discovery|events|flowcontrol\\.apiserver|internal\\.apiserver|networking|node|rbac\\.authorization|resource|scheduling|storage|storagemigration)\\.k8s\\.io$" }}
{{- if and (contains "." $group) (not (regexMatch $own $group)) -}}
{{ first (splitList "." .) }}.{{ $group }}
{{- end }}
{{- end }}

{{- define "kinformerd.image" -}}
{{- $image := .Values.image }}
{{- if $image.digest }}{{ $image.repository }}@{{ $image.digest }}{{ else }}{{ $image.repository }}:{{ default .Chart.AppVersion $image.tag }}{{ end }}
{{- end }}

{{- define "kinformerd.probe" -}}
httpGet:
  port: {{ include "kinformerd.port" .root }}
  {{- if include "kinformerd.listens" .root }}
  scheme: HTTPS
  {{- end }}
  path: {{ .path }}
{{- end }}

{{- define "kinformerd.container" -}}
name: kinformerd
image: {{ include "kinformerd.image" . }}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{- if eq .Values.mode "sidecar" }}
restartPolicy: Always
{{- end }}
args:
  - --config
  - /etc/kinformer/kinformerd.yaml
  {{- if eq .Values.mode "sidecar" }}
  - --write-kubeconfig
  - /run/kinformer/kubeconfig
  {{- end }}
  {{- with .Values.extraArgs }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- if or .Values.env (has .Values.mode (list "daemonset" "statefulset")) }}
env:
  {{- if eq .Values.mode "daemonset" }}
  - name: NODE_NAME
    valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
  {{- else if eq .Values.mode "statefulset" }}
  - {name: SHARDS, value: {{ .Values.replicas | quote }}}
  - name: POD_INDEX
    valueFrom: {fieldRef: {fieldPath: "metadata.labels['apps.kubernetes.io/pod-index']"}}
  {{- end }}
  {{- with .Values.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
ports:
  - name: {{ include "kinformerd.port" . }}
    containerPort: {{ ternary 8443 8081 (eq (include "kinformerd.port" .) "https") }}
    {{- if eq .Values.mode "daemonset" }}
    hostPort: {{ ternary 8443 8081 (eq (include "kinformerd.port" .) "https") }}
    {{- end }}
{{- if has .Values.mode (list "deployment" "sidecar") }}
startupProbe:
  {{- include "kinformerd.probe" (dict "root" . "path" "/readyz") | nindent 2 }}
  periodSeconds: 1
  failureThreshold: 86400  # it waits for the API server and a first list as long as they take
{{- end }}
readinessProbe:
  {{- include "kinformerd.probe" (dict "root" . "path" "/readyz") | nindent 2 }}
  periodSeconds: 10
livenessProbe:
  {{- include "kinformerd.probe" (dict "root" . "path" "/livez") | nindent 2 }}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
volumeMounts:
  - {name: config, mountPath: /etc/kinformer, readOnly: true}
  {{- if eq .Values.mode "sidecar" }}
  - {name: run, mountPath: /run/kinformer}
  {{- else if .Values.listen }}
  - {name: tls, mountPath: /etc/kinformer-tls, readOnly: true}
  {{- end }}
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
