import {
  type EnumValueNode,
  GraphQLError,
  type GraphQLScalarLiteralParser,
  Kind,
  type ValueNode,
} from "grafast/graphql";
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
    "Scalars that are written as text also accept numbers, in documents and variables; errors have locations",
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

/** Core accepts numbers in variables only, and converts an object there to `[object Object]`. */
function acceptNumbers(typeOf: MakeStringType): MakeStringType {
  return (description, coerce, name) => {
    const refusal = `${name ?? "This type"} must be a string or a number.`;
    const read = (text: string) => (coerce ? coerce(text) : text);
    return {
      ...typeOf(description, coerce, name),
      extensions: TAKES_EXACT_NUMBERS,
      parseValue(value) {
        if (isExactNumber(value)) return read(integerText(value));
        if (typeof value !== "string" && typeof value !== "number") throw new GraphQLError(refusal);
        if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
          throw new GraphQLError("The number is too large and has lost digits: send it as a string.");
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

/** `1.0` is accepted as an integer. */
function integerText({ rawJSON }: ExactNumber): string {
  const number = Number(rawJSON);
  return Number.isSafeInteger(number) ? String(number) : rawJSON;
}

function withLocation(type: string, parse: GraphQLScalarLiteralParser<unknown>): GraphQLScalarLiteralParser<unknown> {
  return (node, variables) => {
    const enumValue = findEnumValue(node);
    // Grafast would find it while planning, and report an internal error.
    if (enumValue)
      throw new GraphQLError(`${type} has no value ${enumValue.value}: put it in quotes.`, { nodes: enumValue });
    try {
      return parse(node, variables);
    } catch (error) {
      throw error instanceof GraphQLError && !error.nodes ? new GraphQLError(error.message, { nodes: node }) : error;
    }
  };
}

/** The first enum value within a list or an object; a single one is refused already. */
function findEnumValue(node: ValueNode): EnumValueNode | undefined {
  const values =
    node.kind === Kind.LIST ? node.values : node.kind === Kind.OBJECT ? node.fields.map(({ value }) => value) : [];
  for (const value of values) {
    const enumValue = value.kind === Kind.ENUM ? value : findEnumValue(value);
    if (enumValue) return enumValue;
  }
}
