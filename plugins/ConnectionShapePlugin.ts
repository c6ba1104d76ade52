import { type connection, type FieldPlanResolver, lambda, type Step } from "grafast";
import type {} from "graphile-build-pg";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      ConnectionShapePlugin: true;
    }
  }
}

export const ConnectionShapePlugin: GraphileConfig.Plugin = {
  name: "ConnectionShapePlugin",
  description: "Connections have edges only, cursors are strings, and a page after a cursor has one before it",
  schema: {
    hooks: {
      GraphQLObjectType_fields(fields, _build, { scope }) {
        if (!scope.isConnectionType) return fields;
        const { nodes: _, ...others } = fields;
        return others;
      },
      GraphQLObjectType_fields_field(field, { graphql: { GraphQLString, GraphQLNonNull } }, { scope }) {
        if (scope.isConnectionEdgeType && scope.isCursorField)
          return { ...field, type: new GraphQLNonNull(GraphQLString) };
        if (!scope.isPageInfo) return field;
        switch (scope.fieldName) {
          case "startCursor":
          case "endCursor":
            return { ...field, type: GraphQLString };
          case "hasPreviousPage":
            return { ...field, plan: planHasMore("hasPreviousPage", ($connection) => $connection.getAfter()) };
          case "hasNextPage":
            return { ...field, plan: planHasMore("hasNextPage", ($connection) => $connection.getBefore()) };
          default:
            return field;
        }
      },
    },
  },
};

type Connection = ReturnType<typeof connection>;

/** PostGraphile looks one row ahead, never back. A given cursor is the position of a row, so there is a page on its other side. */
function planHasMore(
  side: "hasNextPage" | "hasPreviousPage",
  cursorOf: ($connection: Connection) => Step | null,
): FieldPlanResolver {
  return ($parent) => {
    const $page = $parent as ReturnType<Connection["pageInfo"]>;
    // biome-ignore lint/complexity/useLiteralKeys: protected, and the only access from a page to its connection.
    const $cursor = cursorOf($page["getDepOptions"]<Connection>(0).step);
    const $more = $page.get(side);
    return $cursor ? lambda([$more, $cursor], ([more, cursor]) => more || cursor != null) : $more;
  };
}
