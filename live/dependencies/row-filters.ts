import pg from "pg";
import type { Statement, StatementResult } from "#postgres/statement";
import { findNodes, isNode, nodesOf, parseNodeTree, type TreeNode, type TreeValue } from "./node-tree.ts";

/** A condition that each row of a relation meets which can change a result: the column has the value of one of these expressions. */
export type RowFilter = {
  readonly relation: number;
  readonly column: string;
  /** True if values are equal only if their texts are. */
  readonly isExact: boolean;
  /** SQL, without a parameter and without a relation: the values are those of the caller. */
  readonly expressions: readonly string[];
};

type RowFilterValues = Omit<RowFilter, "expressions"> & { readonly values: readonly string[] };

/** An object that a query uses besides its own text. */
export type UsedTree =
  | {
      readonly of: "policy";
      readonly relation: number;
      readonly isPermissive: boolean;
      readonly isApplied: boolean;
      readonly tree: string;
    }
  | {
      readonly of: "function";
      readonly oid: number;
      /** True if the function runs with other settings than the search path, so that claims in it may be others. */
      readonly changesSettings: boolean;
      readonly tree: string;
    }
  | { readonly of: "view"; readonly tree: string };

type FilteredRelation = {
  readonly oid: number;
  /** How often the query reads the relation; 0 if something else does too. */
  readonly reads: number;
  /** True if a policy, function or view reads the relation once, and nothing else does. */
  readonly isReadOnceByOthers: boolean;
  /** True if policies decide which rows of the relation the caller reads. */
  readonly isSecured: boolean;
  /** The names of its columns, by their numbers. */
  readonly columns: Readonly<Record<string, string>>;
};

type QueryFacts = {
  readonly trees: readonly UsedTree[];
  readonly relations: readonly FilteredRelation[];
  /** The names of functions, as SQL calls them, by their oids. */
  readonly functionNames: ReadonlyMap<number, string>;
};

const FIRST_USER_OID = 16_384;
const TEXT = "25";
const VARCHAR = "1043";
const TYPE_NAMES: Readonly<Record<string, string>> = {
  20: "pg_catalog.int8",
  21: "pg_catalog.int2",
  23: "pg_catalog.int4",
  [TEXT]: "pg_catalog.text",
  114: "pg_catalog.json",
  [VARCHAR]: "pg_catalog.varchar",
  2950: "pg_catalog.uuid",
  3802: "pg_catalog.jsonb",
};
/** `=` of integers of equal and of different sizes, and of UUIDs. */
const EQUAL_VALUES = new Set(["94", "96", "410", "15", "416", "532", "533", "1862", "1868", "2972"]);
const EQUAL_TEXTS = "98";
/** The database's own collation, and those that compare bytes. Others may hold different texts for equal. */
const EXACT_COLLATIONS = new Set(["100", "950", "951"]);
/** `->>` of json and jsonb with a name. */
const MEMBER_OPERATORS = new Set(["3963", "3477"]);
/** Casts of integers to larger types. */
const WIDENING = new Set(["481", "313", "754"]);
const CURRENT_SETTING = "3294";
const CLAIMS_SETTING = "request.jwt.claims";

/** Computes the values as the caller. If Postgres refuses that, nothing is filtered: the query itself may never compute them. */
export async function readFilterValues(
  filters: readonly RowFilter[],
  run: (statement: Statement) => Promise<StatementResult>,
): Promise<RowFilterValues[]> {
  const texts = filters.flatMap(({ expressions }) => expressions.map((each) => `(${each})::pg_catalog.text`));
  const values = await run({ text: `select ${texts.join(", ")}`, values: [] }).then(
    ({ rows }) => [...rows[0]!],
    (error: unknown) => {
      if (error instanceof pg.DatabaseError) return null;
      throw error;
    },
  );
  if (values === null) return [];
  return filters.map(({ expressions, ...filter }) => ({
    ...filter,
    values: values.splice(0, expressions.length).filter((value) => value !== null),
  }));
}

/** Reads parsed queries. A condition of an unknown form gives no filter. */
export function findRowFilters({ trees, relations, functionNames }: QueryFacts): RowFilter[] {
  const callable = new Map([...functionNames].filter(([oid]) => isWithoutRows(oid, trees)));
  const parsed = trees.map((each) => ({ ...each, root: parseNodeTree(each.tree) }));
  const queries = parsed.flatMap((each) =>
    each.of === "function" && each.changesSettings ? [] : [...findNodes(each.root, "QUERY")],
  );
  return relations.flatMap((relation) => {
    if (relation.reads > 0 && relation.isSecured) {
      const own = parsed.filter(
        (each) => each.of === "policy" && each.relation === relation.oid && each.isApplied && each.isPermissive,
      );
      return (
        filterOfPolicies(
          own.map(({ root }) => equalitiesIn(root, "1", callable)),
          relation,
        ) ?? []
      );
    }
    if (!relation.isReadOnceByOthers) return [];
    const [equality] = queries.flatMap((query) => equalitiesOfRead(query, relation.oid, callable));
    return equality ? toRowFilter(relation, [equality]) : [];
  });
}

/** `column = expression` */
type Equality = { readonly column: string; readonly isExact: boolean; readonly expression: string };

/** A row is visible if one of the policies lets it pass: all must compare the same column. */
function filterOfPolicies(policies: readonly Equality[][], relation: FilteredRelation): RowFilter[] | null {
  const [first, ...others] = policies;
  for (const equality of first ?? []) {
    const same = others.map((each) => each.find(({ column }) => column === equality.column));
    if (same.every((each) => each !== undefined)) return toRowFilter(relation, [equality, ...same]);
  }
  return null;
}

function toRowFilter({ oid, columns }: FilteredRelation, equalities: readonly Equality[]): RowFilter[] {
  const [{ column: number, isExact }] = equalities as [Equality];
  const column = columns[number];
  if (column === undefined) return [];
  return [{ relation: oid, column, isExact, expressions: equalities.map(({ expression }) => expression) }];
}

/** A condition in `where` holds for each row that a query uses, however the relation is joined. */
function equalitiesOfRead(query: TreeNode, relation: number, callable: ReadonlyMap<number, string>): Equality[] {
  const entries = nodesOf(query.fields.get("rtable"));
  const at = entries.findIndex(
    ({ fields }) => fields.get("rtekind") === "0" && fields.get("relid") === String(relation),
  );
  const from = query.fields.get("jointree");
  const where = isNode(from) ? from.fields.get("quals") : undefined;
  return at < 0 || !isNode(where) ? [] : equalitiesIn(where, String(at + 1), callable);
}

function equalitiesIn(condition: TreeValue, entry: string, callable: ReadonlyMap<number, string>): Equality[] {
  return conditionsOf(condition).flatMap((each) => {
    const [left, right] = nodesOf(each.fields.get("args"));
    if (each.type !== "OPEXPR" || !left || !right) return [];
    return (
      compare(each, { entry, column: left, value: right }, callable) ??
      compare(each, { entry, column: right, value: left }, callable) ??
      []
    );
  });
}

/** The operands of `and`, also of nested ones. */
function conditionsOf(condition: TreeValue): TreeNode[] {
  if (!isNode(condition)) return [];
  if (condition.type !== "BOOLEXPR" || condition.fields.get("boolop") !== "and") return [condition];
  return nodesOf(condition.fields.get("args")).flatMap(conditionsOf);
}

type Comparison = { readonly entry: string; readonly column: TreeNode; readonly value: TreeNode };

function compare(
  { fields }: TreeNode,
  { entry, column, value }: Comparison,
  callable: ReadonlyMap<number, string>,
): Equality[] | null {
  const operator = String(fields.get("opno"));
  const isExact = operator === EQUAL_TEXTS && EXACT_COLLATIONS.has(String(fields.get("inputcollid")));
  if (!isExact && !EQUAL_VALUES.has(operator)) return null;
  const read = withoutRelabeling(column);
  if (read.type !== "VAR" || read.fields.get("varno") !== entry || read.fields.get("varlevelsup") !== "0") return null;
  const expression = toSql(value, callable);
  return expression === null ? null : [{ column: String(read.fields.get("varattno")), isExact, expression }];
}

function withoutRelabeling(node: TreeNode): TreeNode {
  const arg = node.fields.get("arg");
  return node.type === "RELABELTYPE" && isNode(arg) ? arg : node;
}

/** Null if the value may depend on rows of relations, or the expression has an unknown form. */
function toSql(node: TreeNode, callable: ReadonlyMap<number, string>): string | null {
  const { type, fields } = node;
  const args = nodesOf(fields.get("args"));
  if (type === "SUBLINK") return subselectToSql(fields, callable);
  if (type === "COERCEVIAIO" || type === "RELABELTYPE") {
    const [value, typeName] = [toSqlOf(fields.get("arg"), callable), TYPE_NAMES[String(fields.get("resulttype"))]];
    return value === null || typeName === undefined ? null : `(${value})::${typeName}`;
  }
  if (type === "OPEXPR" && MEMBER_OPERATORS.has(String(fields.get("opno")))) {
    const [object, name] = [toSqlOf(args[0], callable), textOfConstant(args[1])];
    return object === null || name === null ? null : `((${object}) operator(pg_catalog.->>) ${pg.escapeLiteral(name)})`;
  }
  return type === "FUNCEXPR" ? callToSql(fields, args, callable) : null;
}

function toSqlOf(value: TreeValue | undefined, callable: ReadonlyMap<number, string>): string | null {
  return isNode(value) ? toSql(value, callable) : null;
}

function callToSql(
  fields: TreeNode["fields"],
  args: readonly TreeNode[],
  callable: ReadonlyMap<number, string>,
): string | null {
  const id = String(fields.get("funcid"));
  if (WIDENING.has(id)) return toSqlOf(args[0], callable);
  if (id === CURRENT_SETTING && textOfConstant(args[0]) === CLAIMS_SETTING)
    return `pg_catalog.current_setting(${pg.escapeLiteral(CLAIMS_SETTING)}, true)`;
  const name = callable.get(Number(id));
  return args.length > 0 || fields.get("funcretset") !== "false" || name === undefined ? null : `${name}()`;
}

/** `(select expression)` */
function subselectToSql(fields: TreeNode["fields"], callable: ReadonlyMap<number, string>): string | null {
  const query = fields.get("subselect");
  if (fields.get("subLinkType") !== "4" || !isNode(query)) return null;
  const from = query.fields.get("jointree");
  const [target, ...others] = nodesOf(query.fields.get("targetList"));
  const isPlain =
    isNode(from) &&
    from.fields.get("quals") === "<>" &&
    ["rtable", "cteList", "limitOffset", "limitCount", "havingQual", "setOperations"].every(
      (name) => query.fields.get(name) === "<>",
    ) &&
    ["hasAggs", "hasTargetSRFs"].every((name) => query.fields.get(name) === "false");
  return isPlain && others.length === 0 ? toSqlOf(target?.fields.get("expr"), callable) : null;
}

/** Null unless it is a text: its bytes follow a header of four. */
function textOfConstant(node: TreeNode | undefined): string | null {
  if (node?.type !== "CONST" || node.fields.get("consttype") !== TEXT || node.fields.get("constisnull") !== "false")
    return null;
  const value = node.fields.get("constvalue");
  if (!Array.isArray(value)) return null;
  const bytes = value.slice(value.indexOf("[") + 1, -1).map(Number);
  return Buffer.from(bytes.slice(4)).toString();
}

/** True if the function and the functions that it calls are parsed, read no relation, and do not depend on the role. */
function isWithoutRows(oid: number, trees: readonly UsedTree[], callers: readonly number[] = []): boolean {
  const found = trees.find((each) => each.of === "function" && each.oid === oid);
  if (
    found?.of !== "function" ||
    found.changesSettings ||
    callers.includes(oid) ||
    /:rtekind 0 |\{SQLVALUEFUNCTION/.test(found.tree)
  )
    return false;
  const called = [...found.tree.matchAll(/:(?:(?:op)?funcid|aggfnoid|winfnoid) (\d+)/g)].map(([, id]) => Number(id));
  return called.filter((id) => id >= FIRST_USER_OID).every((id) => isWithoutRows(id, trees, [...callers, oid]));
}
