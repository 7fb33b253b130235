// SPDX-License-Identifier: Apache-2.0

// shape reads manifests from standard input, strictly: a field that Kubernetes' own types do not
// have, or that occurs twice, is an error. It prints one line for each: kind, namespace, name, and
// of a DaemonSet what matters to us. "shape pod" prints a pod of the DaemonSet, for a kubelet that
// reads its pods from files.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func fail(err error) {
	fmt.Fprintln(os.Stderr, "shape:", err)
	os.Exit(1)
}

func namespace(text []byte) string {
	var n corev1.Namespace
	if err := yaml.UnmarshalStrict(text, &n); err != nil {
		fail(err)
	}
	return fmt.Sprintf("Namespace %s enforce=%s", n.Name,
		n.Labels["pod-security.kubernetes.io/enforce"])
}

func daemonSet(text []byte) string {
	var d appsv1.DaemonSet
	if err := yaml.UnmarshalStrict(text, &d); err != nil {
		fail(err)
	}
	pod := d.Spec.Template
	for key, value := range d.Spec.Selector.MatchLabels {
		if pod.Labels[key] != value {
			fail(fmt.Errorf("%s: the selector does not match the pods", d.Name))
		}
	}
	canary := ""
	for _, term := range pod.Spec.Affinity.NodeAffinity.
		RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			if e.Key == "crikeep/canary" {
				canary = string(e.Operator)
			}
		}
	}
	c := pod.Spec.Containers[0]
	return fmt.Sprintf("DaemonSet %s/%s pods=%s canary=%s unavailable=%s ready=%t "+
		"hostPID=%t privileged=%t args=%s", d.Namespace, d.Name,
		pod.Labels["app.kubernetes.io/name"], canary,
		d.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable, c.ReadinessProbe != nil,
		pod.Spec.HostPID, *c.SecurityContext.Privileged, strings.Join(c.Args, ","))
}

func pod(text []byte) string {
	var d appsv1.DaemonSet
	if err := yaml.UnmarshalStrict(text, &d); err != nil {
		fail(err)
	}
	p := corev1.Pod{ObjectMeta: d.Spec.Template.ObjectMeta, Spec: d.Spec.Template.Spec}
	p.APIVersion, p.Kind = "v1", "Pod"
	p.Name, p.Namespace = d.Name, d.Namespace
	out, err := yaml.Marshal(p)
	if err != nil {
		fail(err)
	}
	return string(out)
}

func main() {
	pods := len(os.Args) == 2 && os.Args[1] == "pod"
	all, err := io.ReadAll(os.Stdin)
	if err != nil {
		fail(err)
	}
	for _, text := range bytes.Split(all, []byte("\n---\n")) {
		var kind struct {
			Kind string `json:"kind"`
		}
		if err := yaml.Unmarshal(text, &kind); err != nil {
			fail(err)
		}
		switch kind.Kind {
		case "Namespace":
			if !pods {
				fmt.Println(namespace(text))
			}
		case "DaemonSet":
			if pods {
				fmt.Print(pod(text))
			} else {
				fmt.Println(daemonSet(text))
			}
		default:
			fail(fmt.Errorf("a manifest of the kind %q is not expected", kind.Kind))
		}
	}
}
