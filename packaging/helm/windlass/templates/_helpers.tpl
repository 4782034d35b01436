{{/* The image of the operator and of Jobs: a plan that another version made is not applied. */}}
{{- define "windlass.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* A file of packaging/kubernetes, for the namespace of the release. */}}
{{- define "windlass.file" -}}
{{ .root.Files.Get (printf "files/%s.yaml" .name) | replace "windlass-system" .root.Release.Namespace }}
{{- end }}

{{/* The Job that the operator makes its Jobs from. */}}
{{- define "windlass.job" -}}
{{- $job := include "windlass.file" (dict "root" . "name" "job") | fromYaml }}
{{- $pod := $job.spec.template.spec }}
{{- $container := index $pod.containers 0 }}
{{- $settings := list }}
{{- range $name, $value := .Values.settings }}
{{- $settings = append $settings (dict "name" $name "value" $value) }}
{{- end }}
{{- $_ := set $container "image" (include "windlass.image" .) }}
{{- $_ := set $container "imagePullPolicy" .Values.image.pullPolicy }}
{{- $_ := set $container "env" $settings }}
{{- $_ := set $container "resources" .Values.jobs.resources }}
{{- with .Values.imagePullSecrets }}{{- $_ := set $pod "imagePullSecrets" . }}{{- end }}
{{ toYaml $job }}
{{- end }}
