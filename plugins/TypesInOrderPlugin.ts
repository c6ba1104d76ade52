import type {} from "postgraphile";
import { runAtOnce } from "../engine/stepwise.ts";
import { typesInOrder } from "./types-in-order.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      TypesInOrderPlugin: true;
    }
  }
}

export const TypesInOrderPlugin: GraphileConfig.Plugin = {
  name: "TypesInOrderPlugin",
  description: "The types of the schema are collected in core's order, however long the paths between them are",
  provides: ["CollectReferencedTypesPlugin"],
  schema: {
    hooks: {
      GraphQLSchema_types: (types, _build, { config }) => {
        const roots = [config.query, config.mutation, config.subscription].filter((root) => root != null);
        return runAtOnce(typesInOrder([...types, ...roots]));
      },
    },
  },
};
