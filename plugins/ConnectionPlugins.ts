import { isTable, keyOf } from "./table.ts";

declare global {
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

export const ConnectionShapePlugin: GraphileConfig.Plugin = {
  name: "ConnectionShapePlugin",
  description: "Connections have edges only, and cursors are strings",
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
        const isCursorOfPage = scope.isPageInfo && ["startCursor", "endCursor"].includes(scope.fieldName);
        return isCursorOfPage ? { ...field, type: GraphQLString } : field;
      },
    },
  },
};
