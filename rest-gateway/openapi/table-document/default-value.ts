import { baseTypeOf, type DataType } from "../../../engine/catalog/types.ts";
import { parseLiteral } from "../json-literal.ts";

/** `'draft'::character varying`, `'-1'::integer`, `0`, `true` */
const LITERAL =
  /^(?:'(?<quoted>(?:[^'\\]|'')*)'|(?<bare>-?\d+(?:\.\d+)?|true|false))(?:::[^'()]+(?:\(\d+(?:,\d+)?\))?(?:\[\])?)?$/;

/** The default as JSON, where it is a constant; what an expression gives is known when it is run. */
export function defaultValue(expression: string | null, type: DataType): unknown {
  const literal = LITERAL.exec(expression ?? "")?.groups;
  if (!literal) return undefined;
  const text = literal.quoted?.replaceAll("''", "'") ?? literal.bare!;
  return read(text, baseTypeOf(type));
}

/**
 * What a client may leave out, in words: in a schema of what is sent, `default` has openapi-typescript and others take the property for one that
 * is always there.
 */
export function describeDefault(description: string | undefined, value: unknown): string | undefined {
  if (value === undefined) return description;
  return [description, `Default: \`${JSON.stringify(value)}\``].filter((part) => part !== undefined).join("\n\n");
}

function read(text: string, type: DataType): unknown {
  if (type.kind === "enum" || type.kind === "range" || type.kind === "multirange") return text;
  if (type.kind === "array") return text === "{}" ? [] : undefined;
  if (type.kind !== "base") return undefined;
  switch (type.name) {
    case "bool":
      return /^(true|t)$/.test(text) ? true : /^(false|f)$/.test(text) ? false : undefined;
    case "int2":
    case "int4":
    case "int8":
    case "float4":
    case "float8":
    case "numeric":
      // A number that JavaScript would round is none that can be told.
      return String(Number(text)) === text ? Number(text) : undefined;
    case "json":
    case "jsonb":
      return parseLiteral(text);
    default:
      return text;
  }
}
