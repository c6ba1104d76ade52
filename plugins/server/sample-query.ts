import {
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  isRequiredArgument,
  parse,
  print,
} from "grafast/graphql";
import { type RolePrivileges, visibilityRuleOf } from "../VisibilityPlugin.ts";

const MAX_FIELDS = 4;
const MAX_TABLES = 3;

type QueryField = GraphQLField<unknown, unknown>;

/** An example query for the rows of a table; null when the query type has no field of that name. */
export function sampleQuery(schema: GraphQLSchema, table: string): string | null {
  const name = table.replace(/_+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
  const field = schema.getQueryType()?.getFields()[name];
  const rows = field && selectRows(field, () => true);
  return rows ? `{ ${rows} }` : null;
}

/** A query for the rows of the first tables that a role may read; null if there is none. */
export function sampleTablesQuery(schema: GraphQLSchema, role: RolePrivileges): string | null {
  // The schema of anonymous callers has fields that they may use after sign-in only.
  const mayUse = (field: QueryField) => visibilityRuleOf(field)?.(role) ?? true;
  const rows = Object.values(schema.getQueryType()?.getFields() ?? {})
    .values()
    .filter((field) => mayUse(field) && !field.args.some(isRequiredArgument))
    .map((field) => selectRows(field, mayUse))
    .filter((selection) => selection !== null)
    .take(MAX_TABLES)
    .toArray();
  return rows.length === 0 ? null : print(parse(`query Tables { ${rows.join(" ")} }`));
}

/** The first rows of a connection or a list; null if the field is neither or has no column to select. */
function selectRows(field: QueryField, mayUse: (field: QueryField) => boolean): string | null {
  const type = getNamedType(field.type);
  if (!isObjectType(type)) return null;
  const node = nodeOf(type);
  const columns = leavesOf(node ?? type, mayUse);
  if (columns === "") return null;
  if (node) return `${field.name}(first: 5) { totalCount edges { node { ${columns} } } }`;
  const hasLimit = field.args.some(({ name }) => name === "limit");
  return isList(field) && hasLimit ? `${field.name}(limit: 5) { ${columns} }` : null;
}

/** The node type of a connection. */
function nodeOf(type: GraphQLObjectType): GraphQLObjectType | null {
  const edge = type.getFields().edges;
  const edgeType = edge && getNamedType(edge.type);
  const node = isObjectType(edgeType) ? edgeType.getFields().node : undefined;
  const nodeType = node && getNamedType(node.type);
  return isObjectType(nodeType) ? nodeType : null;
}

function isList({ type }: QueryField): boolean {
  return isListType(isNonNullType(type) ? type.ofType : type);
}

function leavesOf(type: GraphQLObjectType, mayUse: (field: QueryField) => boolean): string {
  const leaves = Object.values(type.getFields()).filter(
    (field) => isLeafType(getNamedType(field.type)) && !field.args.some(isRequiredArgument) && mayUse(field),
  );
  const names = leaves.map(({ name }) => name);
  // Computed columns precede the key.
  const ordered = [...names.filter((name) => name === "id"), ...names.filter((name) => name !== "id")];
  return ordered.slice(0, MAX_FIELDS).join(" ");
}
