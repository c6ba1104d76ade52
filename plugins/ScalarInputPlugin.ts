import {
  type EnumValueNode,
  GraphQLError,
  type GraphQLScalarLiteralParser,
  Kind,
  type ValueNode,
} from "postgraphile/graphql";
import { type ExactNumber, isExactNumber } from "../engine/json/json-values.ts";
import { TAKES_EXACT_NUMBERS } from "./graphql-types.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      ScalarInputPlugin: true;
    }
  }
}

type MakeStringType = GraphileBuild.Build["stringTypeSpec"];

export const ScalarInputPlugin: GraphileConfig.Plugin = {
  name: "ScalarInputPlugin",
  description:
    "What is written as text may be a number too, in a document as in a variable; what is refused, says where",
  schema: {
    hooks: {
      build(build) {
        build.stringTypeSpec = acceptNumbers(build.stringTypeSpec);
        return build;
      },
      GraphQLScalarType: (config) =>
        config.parseLiteral ? { ...config, parseLiteral: withLocation(config.name, config.parseLiteral) } : config,
    },
  },
};

/** Core takes numbers from variables only, and makes `[object Object]` of an object there. */
function acceptNumbers(typeOf: MakeStringType): MakeStringType {
  return (description, coerce, name) => {
    const refusal = `${name ?? "This type"} takes a text or a number.`;
    const read = (text: string) => (coerce ? coerce(text) : text);
    return {
      ...typeOf(description, coerce, name),
      extensions: TAKES_EXACT_NUMBERS,
      parseValue(value) {
        if (isExactNumber(value)) return read(integerText(value));
        if (typeof value !== "string" && typeof value !== "number") throw new GraphQLError(refusal);
        if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
          throw new GraphQLError("Write a number as large as this as a text: it has lost digits.");
        }
        return read(String(value));
      },
      parseLiteral(node) {
        if (node.kind !== Kind.STRING && node.kind !== Kind.INT && node.kind !== Kind.FLOAT) {
          throw new GraphQLError(refusal);
        }
        return read(node.value);
      },
    };
  };
}

/** `1.0` may be given for a whole number. */
function integerText({ rawJSON }: ExactNumber): string {
  const number = Number(rawJSON);
  return Number.isSafeInteger(number) ? String(number) : rawJSON;
}

function withLocation(type: string, parse: GraphQLScalarLiteralParser<unknown>): GraphQLScalarLiteralParser<unknown> {
  return (node, variables) => {
    const enumValue = findEnumValue(node);
    // Grafast finds it when it plans, and that would be a fault of ours.
    if (enumValue)
      throw new GraphQLError(`${type} has no value ${enumValue.value}: put it into quotes.`, { nodes: enumValue });
    try {
      return parse(node, variables);
    } catch (error) {
      throw error instanceof GraphQLError && !error.nodes ? new GraphQLError(error.message, { nodes: node }) : error;
    }
  };
}

/** The first one within a list or an object; what stands alone is refused already. */
function findEnumValue(node: ValueNode): EnumValueNode | undefined {
  const values =
    node.kind === Kind.LIST ? node.values : node.kind === Kind.OBJECT ? node.fields.map(({ value }) => value) : [];
  for (const value of values) {
    const enumValue = value.kind === Kind.ENUM ? value : findEnumValue(value);
    if (enumValue) return enumValue;
  }
}
