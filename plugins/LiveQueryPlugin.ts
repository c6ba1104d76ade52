/** The subscription field that has the fields of queries. */
const LIVE_FIELD = "live";

export const LiveQueryPlugin: GraphileConfig.Plugin = {
  name: "LiveQueryPlugin",
  description: "subscription { live { … } }: a query whose result is sent again whenever a commit has changed it",
  after: ["SubscriptionsPlugin"],
  schema: {
    hooks: {
      GraphQLObjectType_fields(fields, build, { scope, fieldWithHooks }) {
        // A subscription that the database declares keeps its name.
        if (!scope.isRootSubscription || fields[LIVE_FIELD]) return fields;
        const field = fieldWithHooks({ fieldName: LIVE_FIELD }, () => ({
          description: "The result of these fields of a query, and again whenever a commit has changed it.",
          type: new build.graphql.GraphQLNonNull(build.getOutputTypeByName(build.inflection.builtin("Query"))),
        }));
        return build.extend(fields, { [LIVE_FIELD]: field }, "live queries");
      },
    },
  },
};
