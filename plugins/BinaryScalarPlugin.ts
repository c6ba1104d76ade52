import type {} from "postgraphile";
import { GraphQLError, Kind } from "postgraphile/graphql";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      BinaryScalarPlugin: true;
    }
  }
}

export const BinaryScalarPlugin: GraphileConfig.Plugin = {
  name: "BinaryScalarPlugin",
  description: "Bytes come as Base64, and what is none is refused; core would write the part of it that it can read",
  schema: {
    hooks: {
      GraphQLScalarType(config, { inflection }) {
        if (config.name !== inflection.builtin("Base64EncodedBinary")) return config;
        return {
          ...config,
          parseValue: readBytes,
          parseLiteral: (node) => readBytes(node.kind === Kind.STRING ? node.value : undefined),
        };
      },
    },
  },
};

function readBytes(value: unknown): Buffer {
  if (typeof value === "string") {
    const bytes = Buffer.from(value, "base64");
    const digits = value.replace(/[\s=]/g, "").length;
    if (digits % 4 !== 1 && bytes.length === Math.floor((digits * 3) / 4)) return bytes;
  }
  throw new GraphQLError("Bytes are written in Base64.");
}
