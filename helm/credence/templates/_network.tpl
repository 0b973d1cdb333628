{{- /* Rules of what pods may reach: of some of the servers of `networkPolicy`, and what `extraEgress` adds. */ -}}
{{- define "credence.egress" -}}
{{- $policy := .root.Values.networkPolicy -}}
{{- range $name := .servers }}
{{- $server := index $policy $name }}
{{- $ports := $server.ports }}
{{- if and (eq $name "kafka") (not $ports) }}
{{- range (include "credence.kafka" $.root | fromYaml).bootstrap_servers }}
{{- $ports = append $ports (regexFind "[0-9]+$" . | atoi) | uniq }}
{{- end }}
{{- end }}
- {{- with $server.to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  ports:
    {{- range $ports }}
    {{- if eq $name "dns" }}
    - port: {{ int . }}
      protocol: UDP
    {{- end }}
    - port: {{ int . }}
    {{- end }}
{{- end }}
{{- with $policy.extraEgress }}
{{ toYaml . }}
{{- end }}
{{- end -}}
