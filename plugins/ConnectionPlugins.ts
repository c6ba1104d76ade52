import { type connection, type FieldPlanResolver, lambda, type Step } from "grafast";
import { isTable, keyOf } from "./table.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      CollectionsPlugin: true;
    }
    interface Provides {
      collections: true;
    }
  }
  namespace GraphileBuild {
    interface PgResourceTags {
      /** A plain list with limit and offset in the query type, instead of a connection. */
      list: true;
    }
  }
}

const inferredPhase = { after: ["inferred"], provides: ["collections"] };

export const CollectionsPlugin: GraphileConfig.Plugin = {
  name: "CollectionsPlugin",
  description: "Tables are connections, everything else is a list; rows are found by their primary key",
  schema: {
    entityBehavior: {
      pgResource: {
        inferred: {
          ...inferredPhase,
          callback(behavior, resource) {
            if (!isTable(resource))
              return [behavior, "-queryField:resource:connection", "-typeField:resource:connection"];
            // Cursors need a key.
            const isList = resource.extensions?.tags?.list || keyOf(resource) === null;
            return [behavior, isList ? "-query:resource:connection" : "-query:resource:list"];
          },
        },
      },
      pgResourceUnique: {
        inferred: {
          ...inferredPhase,
          callback: (behavior, [resource, { attributes }]) =>
            attributes === keyOf(resource) ? behavior : [behavior, "-query:resource:single"],
        },
      },
      pgCodecRelation: {
        inferred: { ...inferredPhase, callback: (behavior) => [behavior, "-manyRelation:resource:connection"] },
      },
    },
  },
};

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

/** Plans the flag. PostGraphile looks one row ahead, never back. A given cursor marks a row, so there is a page on its other side. */
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
