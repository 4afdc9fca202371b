// The parts of a real Kubernetes that tests need, as one program.
//
// Five programs in one binary: which one runs is named by argv[0] (the links that `cargo xtask kube`
// makes) or by the first argument. One link instead of five, and every version that has to agree is
// in one go.sum.
//
// Only the command that runs is constructed: the feature gates and flags of these programs are global
// and would collide.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	args := os.Args
	if run(filepath.Base(args[0]), args) || (len(args) > 1 && run(args[1], args[1:])) {
		return
	}
	fmt.Fprintln(os.Stderr, "usage: kube {etcd|kube-apiserver|kube-controller-manager|kube-scheduler|kubectl} [flag...]")
	os.Exit(2)
}

func run(name string, args []string) bool {
	var command func() *cobra.Command
	switch name {
	case "etcd":
		etcdmain.Main(args)
		return true
	case "kubectl":
		os.Args = args
		kubectlutil.CheckErr(cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()))
		return true
	case "kube-apiserver":
		command = apiserver.NewAPIServerCommand
	case "kube-controller-manager":
		command = controllers.NewControllerManagerCommand
	case "kube-scheduler":
		command = func() *cobra.Command { return scheduler.NewSchedulerCommand() }
	default:
		return false
	}
	os.Args = args
	os.Exit(cli.Run(command()))
	return true
}
