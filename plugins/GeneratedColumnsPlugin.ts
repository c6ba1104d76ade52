import type {} from "postgraphile";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      GeneratedColumnsPlugin: true;
    }
  }
}

export const GeneratedColumnsPlugin: GraphileConfig.Plugin = {
  name: "GeneratedColumnsPlugin",
  description: "What Postgres computes is no input",
  gather: {
    hooks: {
      pgCodecs_attribute(_info, { pgAttribute, attribute }) {
        if (!pgAttribute.attgenerated) return;
        attribute.extensions = { ...attribute.extensions, isInsertable: false, isUpdatable: false };
      },
    },
  },
};
