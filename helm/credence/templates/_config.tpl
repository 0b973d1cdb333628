{{- /*
The configuration with what follows from other values. Written as JSON, which is YAML without doubt about what is text:
Helm's own YAML leaves some quotation marks out that the reader needs.
*/ -}}
{{- define "credence.config" -}}
{{- $host := .Values.listenAddress -}}
{{- $ports := .Values.ports -}}
{{- $set := dict
  "monitoring" (dict "host" $host "port" (int $ports.monitoring))
  "http" (dict "host" $host "port" (int $ports.http)) -}}
{{- if .Values.vendorApi.enabled -}}
{{- $set = set $set "vendor_api" (dict "host" $host "port" (int $ports.vendorApi)) -}}
{{- end -}}
{{- mergeOverwrite (deepCopy .Values.config) $set | toPrettyJson -}}
{{- end -}}

{{- /* What is configured of Kafka, with defaults of what templates read. */ -}}
{{- define "credence.kafka" -}}
{{- $defaults := .Files.Get "files/defaults.yaml" | fromYaml -}}
{{- mergeOverwrite $defaults.kafka (deepCopy .Values.config.kafka) | toYaml -}}
{{- end -}}

{{- /* Problems that no schema can tell. */ -}}
{{- define "credence.check" -}}
{{- $values := .Values -}}
{{- $redis := default dict $values.config.redis -}}
{{- range $vendor := keys (default dict $values.config.vendors) | sortAlpha -}}
{{- $variable := printf "CREDENCE_VENDORS__%s__LABEL_KEYS_FILE" (upper $vendor) -}}
{{- if not (hasKey $values.secrets $variable) -}}
{{- fail (printf "vendor %s has no label keys: set secrets.%s, for all processes" $vendor $variable) -}}
{{- end -}}
{{- end -}}
{{- range $name := list "predictions" "labels" "scheduler" "web" -}}
{{- $secrets := merge (dict) (index $values $name).secrets $values.secrets -}}
{{- if not (or $redis.url (hasKey $secrets "CREDENCE_REDIS__URL_FILE")) -}}
{{- fail (printf "Redis is not told to %s: set config.redis.url, or secrets.CREDENCE_REDIS__URL_FILE where it holds a password" $name) -}}
{{- end -}}
{{- end -}}
{{- $kafka := include "credence.kafka" . | fromYaml -}}
{{- range $name := list "predictions" "labels" -}}
{{- $most := (index $values $name).autoscaling.maxReplicas -}}
{{- if and $most (gt (int $most) (int $kafka.partitions)) -}}
{{- fail (printf "%s.autoscaling.maxReplicas: %d is more than config.kafka.partitions, %d: the others would have nothing to read" $name (int $most) (int $kafka.partitions)) -}}
{{- end -}}
{{- end -}}
{{- if $values.vendorApi.enabled -}}
{{- $tokens := list -}}
{{- range $vendor := default dict $values.config.vendors -}}
{{- $tokens = concat $tokens (default list $vendor.token_sha256) -}}
{{- end -}}
{{- if not $tokens -}}
{{- fail "vendorApi.enabled: no vendor of config.vendors has a token_sha256, so there is no API to serve" -}}
{{- end -}}
{{- end -}}
{{- range $key, $ingress := dict "page.ingress" $values.page.ingress "vendorApi.ingress" $values.vendorApi.ingress -}}
{{- if and $ingress.enabled (not $ingress.hosts) -}}
{{- fail (printf "%s.hosts: an Ingress without a host would answer for every name" $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
