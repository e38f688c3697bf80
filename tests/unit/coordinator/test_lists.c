/* Lists and arrays of tensors in graphs: results as JSON and messages, on one rank, and on two
 * ranks with every other node on the other one, so that each list that goes from node to node
 * travels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "ranks.h"

#define ROWS(rows) (sizeof(rows) / sizeof((rows)[0]))

/* Statements "name = Op(input, ...) {'attr': value}", one a line; quotes stand for double ones. */
struct row {
    const char *graph;
    const char *fetch;
    const char *result; /* JSON, or a part of the message of a run that fails */
};

static const char constants[] =
    "i0 = Const() {'dtype': 'int32', 'value': 0}\n"
    "i1 = Const() {'dtype': 'int32', 'value': 1}\n"
    "i2 = Const() {'dtype': 'int32', 'value': 2}\n"
    "i5 = Const() {'dtype': 'int32', 'value': 5}\n"
    "any = Const() {'dtype': 'int32', 'value': -1}\n"
    "any64 = Const() {'dtype': 'int64', 'value': -1}\n"
    "none64 = Const() {'dtype': 'int64', 'value': []}\n"
    "scalar = Const() {'dtype': 'int32', 'value': []}\n"
    "pair = Const() {'dtype': 'int32', 'value': [2]}\n"
    "open = Const() {'dtype': 'int32', 'value': [-1]}\n"
    "a = Const() {'dtype': 'float32', 'value': [1, 2]}\n"
    "b = Const() {'dtype': 'float32', 'value': [3, 4]}\n"
    "c = Const() {'dtype': 'float32', 'value': [5, 6, 7]}\n"
    "x = Const() {'dtype': 'float32', 'value': 9}\n"
    "n = Const() {'dtype': 'int32', 'value': [7, 8]}\n"
    "t = Const() {'dtype': 'string', 'value': ['ab', '']}\n"
    "rows = Const() {'dtype': 'float32', 'value': [[1,2],[3,4],[5,6]]}\n"
    "i02 = Const() {'dtype': 'int32', 'value': [0, 2]}\n"
    "i20 = Const() {'dtype': 'int32', 'value': [2, 0]}\n"
    "i201 = Const() {'dtype': 'int32', 'value': [2, 0, 1]}\n"
    "big = Const() {'dtype': 'int32', 'value': 2000000000}\n"
    "l12 = Const() {'dtype': 'int64', 'value': [1, 2]}\n"
    "l11 = Const() {'dtype': 'int64', 'value': [1, 1]}\n"
    "l012 = Const() {'dtype': 'int64', 'value': [0, 1, 2]}\n";

#define F       "{'element_dtype': 'float32'}\n"
#define V       "{'element_dtype': 'variant'}\n"
#define EMPTY   "e = EmptyTensorList(any, any) " F
#define THREE   "three = TensorListReserve(any, l3) " F "l3 = Add(i1, i2)\n"
#define A_B     EMPTY "la = TensorListPushBack(e, a)\nlb = TensorListPushBack(la, b)\n"
#define PARTIAL "part = TensorListSetItem(three, i1, a)\n" THREE

/* A loop that moves the elements of one list into another, as many as `count` says. */
#define IN_LOOP " {'frame_name': 'loop', 'is_constant': true}\n"
#define MOVE(count)                                                                                \
    "from = TensorListFromTensor(n, scalar)\n"                                                     \
    "to = EmptyTensorList(scalar, any) {'element_dtype': 'int32'}\n"                               \
    "m = Const() {'dtype': 'int32', 'value': " count "}\n"                                         \
    "f = Enter(from)" IN_LOOP "mm = Enter(m)" IN_LOOP "one = Enter(i1)" IN_LOOP                    \
    "s = Enter(scalar)" IN_LOOP "i_s = Enter(i0) {'frame_name': 'loop'}\n"                         \
    "y_s = Enter(to) {'frame_name': 'loop'}\n"                                                     \
    "i = Merge(i_s, i_n)\ny = Merge(y_s, y_n)\n"                                                   \
    "more = Less(i, mm)\ngo = LoopCond(more)\n"                                                    \
    "i_w = Switch(i, go)\ny_w = Switch(y, go)\n"                                                   \
    "item = TensorListGetItem(f, i_w:1, s) {'element_dtype': 'int32'}\n"                           \
    "y_p = TensorListPushBack(y_w:1, item)\ni_p = Add(i_w:1, one)\n"                               \
    "i_n = NextIteration(i_p)\ny_n = NextIteration(y_p)\nend = Exit(y_w)\n"

static const struct row lists[] = {
    {MOVE("2"), "end", "[7,8]"},
    {MOVE("0"), "end", "[]"},
    {EMPTY, "e", "[]"},
    {A_B, "lb", "[[1,2],[3,4]]"},
    /* A list is a value: what comes of it does not change it. */
    {A_B "lc = TensorListPushBack(la, c)\nn1 = TensorListLength(la)\nn2 = TensorListLength(lb)\n"
         "y = Pack(n1, n2) {'N': 2}\n",
     "y", "[1,2]"},
    {A_B "z = TensorListSetItem(lb, i0, b)\nzs = TensorListStack(z, any) " F
         "ys = TensorListStack(lb, any) " F "y = Pack(zs, ys) {'N': 2}\n",
     "y", "[[[3,4],[3,4]],[[1,2],[3,4]]]"},
    {A_B "y = TensorListGetItem(lb, i1, any) " F, "y", "[3,4]"},
    {A_B "y = TensorListPopBack(lb, any) " F, "y:1", "[3,4]"},
    {A_B "y = TensorListPopBack(lb, any) " F, "y", "[[1,2]]"},
    {A_B "y = TensorListStack(lb, pair) {'element_dtype': 'float32', 'num_elements': 2}\n", "y",
     "[[1,2],[3,4]]"},
    {A_B "y = TensorListGather(lb, i201, any) " F "lc = TensorListPushBack(lb, a)\n", "lb",
     "[[1,2],[3,4]]"},
    {A_B "lc = TensorListPushBack(lb, a)\ny = TensorListGather(lc, i201, any) " F, "y",
     "[[1,2],[1,2],[3,4]]"},
    /* Elements that are not set are zeros once anything says their shape. */
    {PARTIAL, "part", "[null,[1,2],null]"},
    {PARTIAL "y = TensorListStack(part, any) " F, "y", "[[0,0],[1,2],[0,0]]"},
    {PARTIAL "y = TensorListGetItem(part, i2, any) " F, "y", "[0,0]"},
    {PARTIAL "y = TensorListPopBack(part, any) " F, "y:1", "[0,0]"},
    {PARTIAL "y = TensorListGather(part, i20, any) {'element_dtype': 'float32'}\n"
             "k = TensorListGather(part, i201, pair) " F,
     "k", "[[0,0],[0,0],[1,2]]"},
    {"r = TensorListReserve(pair, i2) {'element_dtype': 'float32'}\n"
     "y = TensorListStack(r, any) " F,
     "y", "[[0,0],[0,0]]"},
    {"r = TensorListReserve(pair, i1) {'element_dtype': 'string'}\n"
     "y = TensorListStack(r, any) {'element_dtype': 'string'}\n",
     "y", "[[\"\",\"\"]]"},
    {EMPTY "y = TensorListStack(e, pair) " F "z = Shape(y)\n", "z", "[0,2]"},
    /* Lengths. */
    {A_B "z = TensorListResize(lb, i5)\ny = TensorListLength(z)\n", "y", "5"},
    {A_B "y = TensorListResize(lb, i1)\n", "y", "[[1,2]]"},
    {A_B "y = TensorListSetItem(lb, i5, a) {'resize_if_index_out_of_bounds': true}\n", "y",
     "[[1,2],[3,4],null,null,null,[1,2]]"},
    {"r = TensorListReserve(open, i1) {'element_dtype': 'float32'}\n"
     "y = TensorListElementShape(r) {'shape_type': 'int64'}\n",
     "y", "[-1]"},
    {EMPTY "y = TensorListElementShape(e) {'shape_type': 'int32'}\n", "y", "-1"},
    /* From tensors, and back. */
    {"y = TensorListFromTensor(rows, pair)\n", "y", "[[1,2],[3,4],[5,6]]"},
    {"y = TensorListFromTensor(n, scalar)\n", "y", "[7,8]"},
    {"y = TensorListFromTensor(t, any)\n", "y", "[\"ab\",\"\"]"},
    {"y = TensorListScatterV2(n, i20, scalar, any)\n", "y", "[8,null,7]"},
    {"y = TensorListScatterV2(n, i20, scalar, i5)\n", "y", "[8,null,7,null,null]"},
    {"l = TensorListFromTensor(n, scalar)\ny = TensorListScatterIntoExistingList(l, n, i20)\n", "y",
     "[8,8,7]"},
    {"y = TensorListSplit(rows, any, l12)\n", "y", "[[[1,2]],[[3,4],[5,6]]]"},
    {"l = TensorListSplit(rows, any, l012)\n"
     "y = TensorListConcatV2(l, any, none64) {'element_dtype': 'float32'}\n",
     "y", "[[1,2],[3,4],[5,6]]"},
    {"l = TensorListSplit(rows, any, l012)\n"
     "y = TensorListConcatV2(l, any, none64) {'element_dtype': 'float32'}\n",
     "y:1", "[0,1,2]"},
    {PARTIAL "y = TensorListConcatV2(part, any, l012) {'element_dtype': 'float32'}\n", "y",
     "[1,2,0,0]"},
    {EMPTY "y = TensorListConcatV2(e, pair, none64) {'element_dtype': 'float32'}\nz = Shape(y)\n",
     "z", "[0]"},
    /* Ops that move elements move lists as well, and nobody's list changes by it. */
    {A_B "v = Pack(la, lb) {'N': 2}\nw = Unpack(v) {'num': 2}\n"
         "lc = TensorListPushBack(w:1, c)\nall = Pack(w, w:1, lc) {'N': 3}\n",
     "all", "[[[1,2]],[[1,2],[3,4]],[[1,2],[3,4],[5,6,7]]]"},
    {A_B "v = Pack(la, lb) {'N': 2}\ny = Gather(v, i1)\nz = Identity(y)\n", "z", "[[1,2],[3,4]]"},
    {A_B "v = ExpandDims(lb, i0)\nw = Tile(v, pair)\n", "w", "[[[1,2],[3,4]],[[1,2],[3,4]]]"},
    /* Lists in lists, strings in lists. */
    {A_B "o = EmptyTensorList(scalar, any) " V "p = TensorListPushBack(o, lb)\n"
         "q = TensorListPushBack(p, e)\n",
     "q", "[[[1,2],[3,4]],[]]"},
    {A_B "o = EmptyTensorList(scalar, any) " V "p = TensorListPushBack(o, lb)\n"
         "g = TensorListGetItem(p, i0, any) " V "y = TensorListGetItem(g, i1, any) " F,
     "y", "[3,4]"},
    {"e = EmptyTensorList(any, any) {'element_dtype': 'string'}\ny = TensorListPushBack(e, t)\n",
     "y", "[[\"ab\",\"\"]]"},
    /* A string crosses between ranks by itself as well. */
    {"u = Identity(t)\nv = Identity(u)\ny = Identity(v)\n", "y", "[\"ab\",\"\"]"},
};

static const struct row list_failures[] = {
    {MOVE("3"), "end", "index 2: the list has 2 elements"},
    {A_B "y = TensorListGetItem(lb, i2, any) " F, "y", "index 2: the list has 2 elements"},
    {A_B "y = TensorListGetItem(lb, any, any) " F, "y", "index -1: the list has 2 elements"},
    {A_B "y = TensorListSetItem(lb, i2, a)\n", "y", "index 2: the list has 2 elements"},
    {A_B "y = TensorListGetItem(lb, i0, any) {'element_dtype': 'int32'}\n", "y",
     "the list holds float32: attr \"element_dtype\" is int32"},
    {A_B "y = TensorListPushBack(lb, n)\n", "y",
     "the list holds float32: attr \"element_dtype\" is int32"},
    {A_B "y = TensorListGetItem(lb, i0, open2) " F
         "open2 = Const() {'dtype': 'int32', 'value': [3]}\n",
     "y", "element 0 has shape [2]: wants [3]"},
    {"r = TensorListReserve(pair, i2) {'element_dtype': 'float32'}\n"
     "y = TensorListSetItem(r, i0, c)\n",
     "y", "the elements have shape [2]: one cannot have [3]"},
    {"r = TensorListReserve(pair, i2) {'element_dtype': 'float32'}\n"
     "y = TensorListStack(r, scalar) {'element_dtype': 'float32'}\n",
     "y", "\"element_shape\" is []: the list holds elements of shape [2]"},
    {THREE "y = TensorListStack(three, any) " F, "y",
     "the element shape is ? and no element is set that would say the rest"},
    {THREE "y = TensorListGetItem(three, i0, open) " F, "y",
     "the element shape is [?] and no element is set that would say the rest"},
    {EMPTY "y = TensorListStack(e, any) " F, "y",
     "the element shape is ? and no element is set that would say the rest"},
    {A_B "lc = TensorListPushBack(lb, c)\ny = TensorListStack(lc, any) " F, "y",
     "element 2 has shape [3]: wants [2]"},
    {A_B "y = TensorListStack(lb, any) {'element_dtype': 'float32', 'num_elements': 3}\n", "y",
     "the list has 2 elements: attr \"num_elements\" is 3"},
    {A_B "y = TensorListGather(lb, i20, any) " F, "y", "index 2 at 0: the list has 2 elements"},
    {EMPTY "y = TensorListPopBack(e, any) " F, "y", "the list has no element to pop"},
    {A_B "y = TensorListResize(lb, any)\n", "y", "-1 elements: wants 0 to 134217728"},
    {"y = TensorListReserve(any, any) " F, "y", "-1 elements: wants 0 to 134217728"},
    {"y = TensorListReserve(any, big) " F, "y", "2000000000 elements: wants 0 to 134217728"},
    {A_B "y = TensorListSetItem(lb, big, a) {'resize_if_index_out_of_bounds': true}\n", "y",
     "2000000001 elements: wants 0 to 134217728"},
    {"e = EmptyTensorList(any, i1) {'element_dtype': 'float32'}\nla = TensorListPushBack(e, a)\n"
     "y = TensorListPushBack(la, b)\n",
     "y", "2 elements: wants at most 1"},
    {"y = TensorListScatterV2(n, i20, scalar, i2)\n", "y", "index 2 at 0: the list has 2 elements"},
    {"y = TensorListScatterV2(n, minus, scalar, any)\n"
     "minus = Const() {'dtype': 'int32', 'value': [0, -3]}\n",
     "y", "index -3 at 1: wants 0 or more"},
    {EMPTY "f = TensorListPushBack(e, x)\n"
           "y = TensorListConcatV2(f, any, none64) {'element_dtype': 'float32'}\n",
     "y", "element 0 is a scalar: wants one with rows"},
    {PARTIAL "y = TensorListConcatV2(part, any, none64) {'element_dtype': 'float32'}\n", "y",
     "element 0 is not set, and nothing says how many rows it has: \"leading_dims\" has 0 entries"},
    {"o = EmptyTensorList(scalar, any) " V "p = TensorListResize(o, i1)\n"
     "g = TensorListGetItem(p, i0, any) " V "y = TensorListLength(g)\n",
     "y", "\"input_handle\" holds no list"},
};

/* Found before anything runs. */
static const struct row wrong_graphs[] = {
    {"y = TensorListFromTensor(x, any)\n", "y", "\"tensor\" is a scalar: wants a tensor with rows"},
    {"y = TensorListFromTensor(rows, scalar)\n", "y",
     "the rows of \"tensor\" have shape [2]: \"element_shape\" wants []"},
    {"y = TensorListScatterV2(rows, i20, any, any)\n", "y",
     "\"tensor\" has 3 rows and \"indices\" 2 entries: wants as many"},
    {"y = TensorListSplit(rows, any, l11)\n", "y", "\"lengths\" sum to 2: \"tensor\" has 3 rows"},
    {"y = EmptyTensorList(i2, any) {'element_dtype': 'float32'}\n", "y",
     "\"element_shape\" is 2: wants a vector of sizes, or -1 when the rank is not known"},
    {"y = EmptyTensorList(rows2, any) {'element_dtype': 'float32'}\n"
     "rows2 = Const() {'dtype': 'int32', 'value': [[1]]}\n",
     "y", "\"element_shape\" wants a vector, got shape [1,1]"},
    {EMPTY "y = TensorListGetItem(e, i20, any) " F, "y", "\"index\" wants a scalar, got shape [2]"},
    {"y = EmptyTensorList(any, any) {'element_dtype': 'resource'}\n", "y", "resource"},
    {EMPTY "y = Add(e, e)\n", "y", "variant"},
};

#define ARRAY(attrs)      "h = TensorArrayV3(i2) {'dtype': 'float32'" attrs "}\n"
#define READ(index, flow) "y = TensorArrayReadV3(h, " index ", " flow ") {'dtype': 'float32'}\n"
#define WROTE                                                                                      \
    "f0 = TensorArrayWriteV3(h, i0, a, h:1)\n"                                                     \
    "f1 = TensorArrayWriteV3(h, i1, b, f0)\n"
#define SAYS_PAIR ", 'element_shape': [2]"

static const struct row arrays[] = {
    {ARRAY("") WROTE READ("i1", "f1"), "y", "[3,4]"},
    {ARRAY("") WROTE "y = TensorArrayGatherV3(h, i1v, f1) {'dtype': 'float32'}\n"
                     "i1v = Const() {'dtype': 'int32', 'value': [1, 0]}\n",
     "y", "[[3,4],[1,2]]"},
    {ARRAY("") WROTE "y = TensorArrayConcatV3(h, f1) {'dtype': 'float32'}\n", "y", "[1,2,3,4]"},
    {ARRAY("") WROTE "y = TensorArrayConcatV3(h, f1) {'dtype': 'float32'}\n", "y:1", "[2,2]"},
    {ARRAY("") WROTE "y = TensorArraySizeV3(h, f1)\n", "y", "2"},
    /* Never written: zeros, when the array says what of. */
    {ARRAY(SAYS_PAIR) READ("i1", "h:1"), "y", "[0,0]"},
    {ARRAY(SAYS_PAIR) "f0 = TensorArrayWriteV3(h, i1, b, h:1)\n"
                      "y = TensorArrayGatherV3(h, i01, f0) {'dtype': 'float32'}\n"
                      "i01 = Const() {'dtype': 'int32', 'value': [0, 1]}\n",
     "y", "[[0,0],[3,4]]"},
    {ARRAY(SAYS_PAIR) "f0 = TensorArrayWriteV3(h, i1, b, h:1)\n"
                      "y = TensorArrayConcatV3(h, f0) {'dtype': 'float32'}\n",
     "y", "[0,0,3,4]"},
    /* It grows when it may. */
    {ARRAY(", 'dynamic_size': true") "f0 = TensorArrayWriteV3(h, i5, a, h:1)\n"
                                     "y = TensorArraySizeV3(h, f0)\n",
     "y", "6"},
    {"h = TensorArrayV3(i5) {'dtype': 'float32', 'element_shape': [2]}\n"
     "f0 = TensorArrayScatterV3(h, i201, rows, h:1)\n" READ("i2", "f0"),
     "y", "[1,2]"},
    {ARRAY("") "f0 = TensorArraySplitV3(h, rows, l12, h:1)\n" READ("i1", "f0"), "y",
     "[[3,4],[5,6]]"},
    {ARRAY(", 'clear_after_read': false") WROTE
     "r0 = TensorArrayReadV3(h, i0, f1) {'dtype': 'float32'}\n"
     "r1 = TensorArrayReadV3(h, i0, f1) {'dtype': 'float32'}\ny = Add(r0, r1)\n",
     "y", "[2,4]"},
    {ARRAY("") WROTE READ("i0", "f1") "k = TensorArrayCloseV3(h, ^y)\n", "y", "[1,2]"},
    /* The elements may be lists. */
    {A_B "h = TensorArrayV3(i2) {'dtype': 'variant'}\nf0 = TensorArrayWriteV3(h, i1, lb, h:1)\n"
         "y = TensorArrayReadV3(h, i1, f0) {'dtype': 'variant'}\n",
     "y", "[[1,2],[3,4]]"},
};

static const struct row array_failures[] = {
    {ARRAY("") READ("i1", "h:1"), "y",
     "element 1 is not set, and the element shape is only known as ?"},
    {ARRAY("") WROTE READ("i2", "f1"), "y",
     "index 2: the array has 2 elements and no dynamic_size"},
    {ARRAY("") "y = TensorArrayWriteV3(h, i5, a, h:1)\n", "y",
     "index 5: the array has 2 elements and no dynamic_size"},
    {ARRAY(", 'dynamic_size': true") "y = TensorArrayWriteV3(h, big, a, h:1)\n", "y",
     "2000000001 elements: wants 0 to 134217728"},
    {ARRAY("") WROTE "y = TensorArrayWriteV3(h, i0, b, f1)\n", "y",
     "element 0 has been written: it is written once"},
    {ARRAY("") WROTE "r = TensorArrayReadV3(h, i0, f1) {'dtype': 'float32'}\n"
                     "y = TensorArrayReadV3(h, i0, f1, ^r) {'dtype': 'float32'}\n",
     "y", "element 0 has been read, and clear_after_read is true: it is read once"},
    {ARRAY(", 'clear_after_read': false") WROTE
     "r = TensorArrayReadV3(h, i0, f1) {'dtype': 'float32'}\n"
     "y = TensorArrayWriteV3(h, i0, b, f1, ^r)\n",
     "y", "element 0 has been read: it is written once"},
    {ARRAY(SAYS_PAIR) "y = TensorArrayWriteV3(h, i0, c, h:1)\n", "y",
     "the elements have shape [2]: one cannot have [3]"},
    {ARRAY(", 'identical_element_shapes': true") "f0 = TensorArrayWriteV3(h, i0, a, h:1)\n"
                                                 "y = TensorArrayWriteV3(h, i1, c, f0)\n",
     "y", "the elements have shape [2]: one cannot have [3]"},
    {ARRAY("") "y = TensorArrayWriteV3(h, i0, n, h:1)\n", "y",
     "the array holds float32: attr \"T\" is int32"},
    {ARRAY("") WROTE "y = TensorArrayReadV3(h, i0, f1) {'dtype': 'int32'}\n", "y",
     "the array holds float32: attr \"dtype\" is int32"},
    {ARRAY("") "f0 = TensorArrayWriteV3(h, i0, a, h:1)\nf1 = TensorArrayWriteV3(h, i1, c, f0)\n"
               "y = TensorArrayGatherV3(h, i01, f1) {'dtype': 'float32'}\n"
               "i01 = Const() {'dtype': 'int32', 'value': [0, 1]}\n",
     "y", "element 1 has shape [3]: wants [2]"},
    {ARRAY("") WROTE
     "y = TensorArrayGatherV3(h, i20, f1) {'dtype': 'float32', 'element_shape': [3]}\n",
     "y", "index 2: the array has 2 elements"},
    {ARRAY(SAYS_PAIR) WROTE
     "y = TensorArrayGatherV3(h, i20, f1) {'dtype': 'float32', 'element_shape': [3]}\n",
     "y", "the array holds elements of shape [2]: the op wants [3]"},
    {ARRAY("") "y = TensorArraySplitV3(h, rows, l111, h:1)\n"
               "l111 = Const() {'dtype': 'int64', 'value': [1, 1, 1]}\n",
     "y", "\"lengths\" has 3 entries: the array has 2 elements and no dynamic_size"},
    {ARRAY("") WROTE "k = TensorArrayCloseV3(h, ^f1)\ny = TensorArraySizeV3(h, f1, ^k)\n", "y",
     "the array has been closed"},
    {"y = TensorArrayV3(any) {'dtype': 'float32'}\n", "y:1", "-1 elements: wants 0 to 134217728"},
    {ARRAY(""), "h", "JSON has no form of a resource"},
};

/* ---- From a statement to a node ---- */

/* Adds one text between quotes. */
static void add_quoted(struct troupe_text *out, const char *text, size_t length)
{
    troupe_text_add(out, "\"");
    troupe_text_add_bytes(out, text, length);
    troupe_text_add(out, "\"");
}

static void add_inputs(struct troupe_text *out, const char *text, size_t length)
{
    size_t at = 0;
    while (at < length) {
        size_t size = strcspn(text + at, ",)");
        troupe_text_add(out, at > 0 ? ", " : "");
        add_quoted(out, text + at, size);
        at += size + 1;
        at += strspn(text + at, " ");
    }
}

/* Adds the node of a statement, on rank `rank`; what handles an array is where it is made. */
static void add_node(struct troupe_text *out, const char *statement, size_t length, int rank)
{
    const char *op = strstr(statement, " = ") + 3, *inputs = strchr(op, '(') + 1;
    const char *close = strchr(inputs, ')'), *attrs = strchr(close, '{');
    troupe_text_add(out, "{\"name\": ");
    add_quoted(out, statement, (size_t)(op - 3 - statement));
    troupe_text_add(out, ", \"op\": ");
    add_quoted(out, op, (size_t)(inputs - 1 - op));
    troupe_text_add(out, ", \"input\": [");
    add_inputs(out, inputs, (size_t)(close - inputs));
    troupe_text_add(out, "]");
    if (strncmp(op, "TensorArray", strlen("TensorArray")) != 0)
        troupe_text_addf(out, ", \"device\": \"/job:worker/task:%d\"", rank);
    if (attrs && attrs < statement + length) {
        troupe_text_add(out, ", \"attr\": ");
        for (const char *c = attrs; c < statement + length; c++)
            troupe_text_add_bytes(out, *c == '\'' ? "\"" : c, 1);
    }
    troupe_text_add(out, "}");
}

static void add_nodes(struct troupe_text *out, const char *statements, int ranks, int *count)
{
    while (*statements) {
        size_t length = strcspn(statements, "\n");
        troupe_text_add(out, *count > 0 ? ",\n" : "");
        add_node(out, statements, length, *count % ranks);
        statements += length + 1;
        (*count)++;
    }
}

static char *graph_of(const struct row *row, int ranks)
{
    struct troupe_text text;
    int count = 0;
    troupe_text_init(&text);
    troupe_text_add(&text, "{\"node\": [");
    add_nodes(&text, constants, ranks, &count);
    add_nodes(&text, row->graph, ranks, &count);
    troupe_text_add(&text, "]}");
    char *graph = troupe_text_take(&text);
    CHECK(graph);
    return graph;
}

/* ---- Running rows ---- */

static const struct row *current;
static bool current_fails;

static enum troupe_status fetch(struct troupe_session *session, char **json)
{
    struct troupe_run run = {.fetches = &current->fetch, .fetch_count = 1, .steps = 3};
    struct troupe_tensor *value;
    int64_t done;
    enum troupe_status status = troupe_session_run(session, &run, &value, &done);
    if (status != TROUPE_OK)
        return status;
    status = troupe_tensor_print(value, json);
    troupe_tensor_unref(value);
    return status;
}

/* Takes the spaces out, which JSON text has between items. */
static void squeeze(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++)
        if (*from != ' ')
            *to++ = *from;
    *to = '\0';
}

/* Numbers as short as they are: "1.0" is "1". */
static void shorten(char *text)
{
    char *dot;
    while ((dot = strstr(text, ".0")) != NULL)
        memmove(dot, dot + 2, strlen(dot + 2) + 1);
}

static void check_row(int rank, struct troupe_session *session, enum troupe_status opened)
{
    (void)rank;
    char *json = NULL;
    enum troupe_status status = opened == TROUPE_OK ? fetch(session, &json) : opened;
    if (current_fails) {
        if (status != TROUPE_INVALID_ARGUMENT ||
            !strstr(troupe_status_message(), current->result)) {
            fprintf(stderr, "%s%s: wants: %s\n", current->graph, current->fetch, current->result);
            CHECK(false);
        }
        return;
    }
    if (status == TROUPE_OK) {
        squeeze(json);
        shorten(json);
    }
    if (status != TROUPE_OK || strcmp(json, current->result) != 0) {
        fprintf(stderr, "%s%s: got %s, wants %s\n", current->graph, current->fetch,
                json ? json : "nothing", current->result);
        CHECK(false);
    }
    free(json);
}

static void run_rows(const struct row *rows, size_t count, bool fails)
{
    CHECK(count > 0);
    for (size_t i = 0; i < count; i++) {
        for (int ranks = 1; ranks <= 2; ranks++) {
            char *graph = graph_of(&rows[i], ranks);
            current = &rows[i];
            current_fails = fails;
            ranks_run(ranks, ranks, graph, NULL, false, check_row);
            free(graph);
        }
    }
}

static void run_all(void)
{
    run_rows(lists, ROWS(lists), false);
    run_rows(list_failures, ROWS(list_failures), true);
    run_rows(wrong_graphs, ROWS(wrong_graphs), true);
    run_rows(arrays, ROWS(arrays), false);
    run_rows(array_failures, ROWS(array_failures), true);
}

int main(void)
{
    struct troupe_memory_usage before, after;
    run_rows(lists, 1, false); /* what is made once */
    troupe_memory_usage_get(&before);
    run_all();
    troupe_memory_usage_get(&after);
    /* Lists and arrays go with the last token that holds them, also in a step that fails. */
    CHECK(after.live_bytes == before.live_bytes);
    return 0;
}
