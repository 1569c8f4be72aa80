//go:build unix

package pgtest

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// majorVariable chooses the Postgres that New and Server run, by its major
// version. Unset: what pg/local finds.
const majorVariable = "WAYBILL_TEST_POSTGRES"

// Major is the major version that the environment asks for, 0 if it asks for
// none: what New and Server then run is whatever is installed.
func Major(t testing.TB) int {
	t.Helper()
	major, err := chosenMajor()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return major
}

func chosenMajor() (int, error) {
	v := os.Getenv(majorVariable)
	if v == "" {
		return 0, nil
	}
	major, err := strconv.Atoi(v)
	if err != nil {
		return 0, fmt.Errorf("%s=%q: want a major version such as 17", majorVariable, v)
	}
	return major, nil
}

// chosenBinaries is the folder of that version's programs, empty if none is
// asked for. One that is asked for and is not there is an error: a test of it
// must not pass on another.
func chosenBinaries() (string, error) {
	major, err := chosenMajor()
	if err != nil || major == 0 {
		return "", err
	}
	return findBinaries(major)
}

func findBinaries(major int) (string, error) {
	for _, pattern := range []string{
		"/usr/lib/postgresql/%d/bin",
		filepath.Join(cacheRoot(), "%d.*", "bin"),
	} {
		found, _ := filepath.Glob(fmt.Sprintf(pattern, major))
		slices.SortFunc(found, func(a, b string) int { // 17.9.0 before 17.11.0
			return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
		})
		slices.Reverse(found)
		for _, dir := range found {
			if _, err := os.Stat(filepath.Join(dir, "postgres")); err == nil {
				return dir, nil
			}
		}
	}
	return "", fmt.Errorf("no Postgres %[1]d here; `pg/pgtest/fetch.sh %[1]d` fetches one for tests", major)
}

// cacheRoot is where fetch.sh puts what it fetched. Root's own cache is closed
// to the user whom the server runs as.
func cacheRoot() string {
	if dir := os.Getenv("WAYBILL_CACHE"); dir != "" {
		return filepath.Join(dir, "postgres")
	}
	if os.Geteuid() == 0 {
		return "/var/cache/waybill/postgres"
	}
	home, _ := os.UserHomeDir()
	return filepath.Join(home, ".cache", "waybill", "postgres")
}
