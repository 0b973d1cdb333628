{{- define "credence.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 30 | trimSuffix "-" -}}
{{- end -}}

{{- /*
Leaves room for suffixes: a StatefulSet's name can have at most 52 characters. The name of a release may have dots, that of
a Service may not.
*/ -}}
{{- define "credence.fullname" -}}
{{- $name := include "credence.name" . -}}
{{- $whole := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $whole .Values.fullnameOverride | replace "." "-" | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "credence.serviceAccountName" -}}
{{- $own := ternary (include "credence.fullname" .) "default" .Values.serviceAccount.create -}}
{{- default $own .Values.serviceAccount.name -}}
{{- end -}}

{{- /* Parameters: root, and optionally the image tag of a role. */ -}}
{{- define "credence.image" -}}
{{- $image := .root.Values.image -}}
{{- if .tag -}}
{{ $image.repository }}:{{ .tag }}
{{- else if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ default .root.Chart.AppVersion $image.tag }}
{{- end -}}
{{- end -}}

{{- /* Selector labels, which never change. */ -}}
{{- define "credence.selector" -}}
app.kubernetes.io/name: {{ include "credence.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end -}}

{{- define "credence.labels" -}}
{{ include "credence.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "credence.roles" -}}
predictions: [consume, predictions]
labels: [consume, labels]
scheduler: [schedule]
web: [serve]
{{- end -}}
