import {
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
} from "postgraphile/graphql";

const MOST_FIELDS = 4;

/** A first query for the rows of a table, for people to copy; null when its field has another name, or there is none. */
export function sampleQuery(schema: GraphQLSchema, table: string): string | null {
  const name = table.replace(/_+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
  const field = schema.getQueryType()?.getFields()[name];
  if (!field) return null;
  const type = getNamedType(field.type);
  if (!isObjectType(type)) return null;
  const node = nodeOf(type);
  if (node) return `{ ${name}(first: 5) { totalCount edges { node { ${leavesOf(node)} } } } }`;
  return isList(field.type) ? `{ ${name}(limit: 5) { ${leavesOf(type)} } }` : null;
}

/** Of a connection: what its edges hold. */
function nodeOf(type: GraphQLObjectType): GraphQLObjectType | null {
  const edge = type.getFields().edges;
  const edgeType = edge && getNamedType(edge.type);
  const node = isObjectType(edgeType) ? edgeType.getFields().node : undefined;
  const nodeType = node && getNamedType(node.type);
  return isObjectType(nodeType) ? nodeType : null;
}

function isList(type: GraphQLOutputType): boolean {
  return isListType(isNonNullType(type) ? type.ofType : type);
}

function leavesOf(type: GraphQLObjectType): string {
  const leaves = Object.values(type.getFields()).filter((field) => isLeafType(getNamedType(field.type)));
  return leaves
    .slice(0, MOST_FIELDS)
    .map(({ name }) => name)
    .join(" ");
}
