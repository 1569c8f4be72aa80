package protobuf

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/reporter"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Imports are the files that a schema may import, by name. The zero value has
// those that every registry has.
type Imports struct {
	files map[string]*descriptorpb.FileDescriptorProto
	first map[string]string // the name under which a text came first
	size  int
}

// Add makes a text known under a name. Of two texts with one name the first
// counts, as in Confluent's registry; a name that every registry has stays what
// it is. One text under two names is one file, for else each of its types
// would be there twice. It is read as laxly as a schema that is kept, see
// Compile.
func (im *Imports) Add(name, text string) error {
	if _, ok := builtin(name); ok || im.files[name] != nil {
		return nil
	}
	if name == rootName {
		return fmt.Errorf("a schema cannot be imported as %q, which is the name of the schema itself; give the reference another name", name)
	}
	if im.files == nil {
		im.files, im.first = map[string]*descriptorpb.FileDescriptorProto{}, map[string]string{}
	}
	if len(im.files) >= fileLimit {
		return fmt.Errorf("it imports more than %d files", fileLimit)
	}
	if there, ok := im.first[text]; ok {
		im.files[name] = &descriptorpb.FileDescriptorProto{
			Name: &name, Dependency: []string{there}, PublicDependency: []int32{0},
		}
		return nil
	}
	file, err := im.read(text)
	if err != nil {
		return err
	}
	file.Name = &name
	im.files[name], im.first[text] = file, name
	return nil
}

func (im *Imports) read(text string) (*descriptorpb.FileDescriptorProto, error) {
	if im.size += len(text); im.size > sizeLimit {
		return nil, fmt.Errorf("with all it imports it is larger than %d bytes", sizeLimit)
	}
	out, err := understand(text)
	if err != nil {
		return nil, err
	}
	file := out.FileDescriptorProto()
	return file, entries(file.MessageType)
}

// Compile reads a schema that imports no others than those added. Where it is
// kept, as one that another registry took, an import that is not there and the
// options it may define are left out; its types must be there all the same.
// Errors name the element or the place in the text.
func (im *Imports) Compile(text string, kept bool) (*Schema, error) {
	file, err := im.read(text)
	if err != nil {
		return nil, err
	}
	out, err := im.link(file, false)
	if err == nil || len(im.files) == 0 && !kept {
		return out, err
	}
	if kept {
		file = im.relaxed(file)
	}
	return im.link(file, true)
}

// link reads root with what it imports; lax leaves out of that what is missing.
func (im *Imports) link(root *descriptorpb.FileDescriptorProto, lax bool) (*Schema, error) {
	c := protocompile.Compiler{MaxParallelism: 1, Resolver: protocompile.ResolverFunc(func(name string) (protocompile.SearchResult, error) {
		if name == rootName {
			return protocompile.SearchResult{Proto: root}, nil
		}
		if file := im.files[name]; file != nil {
			if lax {
				file = im.relaxed(file)
			}
			return protocompile.SearchResult{Proto: file}, nil
		}
		if out, ok := builtin(name); ok {
			return out, nil
		}
		return protocompile.SearchResult{}, missingError(name)
	})}
	files, err := c.Compile(context.Background(), rootName)
	if err != nil {
		return nil, plain(err)
	}
	linked, ok := files[0].(linker.Result)
	if !ok {
		return nil, errors.New("the schema could not be linked")
	}
	return &Schema{file: linked, types: linker.ResolverFromFile(linked)}, nil
}

// missingError is an import that is not there.
type missingError string

func (name missingError) Error() string {
	return fmt.Sprintf("nothing is known as %q, which is imported; add a reference with that name", string(name))
}

// plain leaves out where in a text an error is: it is not the text that was
// sent, which was written anew. Errors say which element they mean.
func plain(err error) error {
	var missing missingError
	if errors.As(err, &missing) {
		return missing
	}
	var pos reporter.ErrorWithPos
	if errors.As(err, &pos) {
		return pos.Unwrap()
	}
	var panicked protocompile.PanicError
	if errors.As(err, &panicked) {
		return errors.New("it cannot be understood")
	}
	return errors.New(strings.TrimPrefix(err.Error(), rootName+": "))
}
