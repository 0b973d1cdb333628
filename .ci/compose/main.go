// Loads Compose files as Compose does, with all their profiles, and prints the services that are left. Fails where
// they cannot be loaded, or where a service names something that is not there.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	options, err := cli.NewProjectOptions(os.Args[1:], cli.WithProfiles([]string{"*"}))
	if err != nil {
		log.Fatal(err)
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range project.ServiceNames() {
		fmt.Println(name)
	}
}
