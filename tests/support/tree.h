/* Random expressions of arrays of one type, and an evaluator of its own that computes one element at a time. */
#ifndef DMT_TREE_H
#define DMT_TREE_H

#include "support/cases.h"

enum { DMT_TREE_LEAVES = 8, DMT_TREE_ARRAYS = 3, DMT_TREE_NODES = 24 };

typedef struct dmt_tree_node {
    int kind, which, child[4]; /* of a choice: child[0] < child[1] ? child[2] : child[3] */
} dmt_tree_node;

typedef struct dmt_tree {
    dmt_tree_node node[DMT_TREE_NODES];
    int nodes, arrays;
    dm_dtype carrier; /* that operations are computed in */
    dm_dtype dtype;   /* of the arrays */
    double literal[DMT_TREE_LEAVES], given[2];
    bool uses_given[2];
    char text[1200]; /* its arrays are x0, x1, x2 */
} dmt_tree;

dmt_tree dmt_tree_random(dmt_case *c, dm_dtype dtype);
/* Element i of the expression, whose shape is out's: of the type dtype, but of floats in the carrier. */
long double dmt_tree_value(const dmt_tree *t, dmt_host *const *x, const dmt_host *out, int64_t i);
/* What dm_map takes: arrays, and the numbers that are used. Returns how many. */
int dmt_tree_arguments(const dmt_tree *t, dmt_operand *const *x, dm_map_arg *args);

#endif
