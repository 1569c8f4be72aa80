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

// Binaries is the folder with the server programs of Postgres major. Where
// they are neither installed nor fetched, t is skipped: fetch.sh beside this
// file fetches them.
func Binaries(t testing.TB, major int) string {
	t.Helper()
	dir, err := findBinaries(major)
	if err != nil {
		t.Skip(err)
	}
	return dir
}

// chosenBinaries is the folder of the Postgres that the environment asks for,
// empty if it asks for none. One that is asked for and is not there is an
// error: a test of it must not pass on another.
func chosenBinaries() (string, error) {
	v := os.Getenv(majorVariable)
	if v == "" {
		return "", nil
	}
	major, err := strconv.Atoi(v)
	if err != nil {
		return "", fmt.Errorf("%s=%q: want a major version such as 17", majorVariable, v)
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
