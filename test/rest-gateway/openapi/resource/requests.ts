import fc, { type Arbitrary } from "fast-check";
import type { Json, Operation, Parameter, ReadDocument } from "./operations.ts";

export type Request = {
  readonly operation: Operation;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
};

/** A `wild` request is one of a client that has not read the document. */
export type Manner = "as documented" | "wild";

/** Requests of an operation, made from nothing but the document. */
export function requestsOf(operation: Operation, document: ReadDocument, responseOptions: Manner): Arbitrary<Request> {
  const values = makeValues(document.resolve);
  const isWild = responseOptions === "wild";
  const value = (schema: Json) =>
    isWild ? fc.oneof({ weight: 2, arbitrary: values(schema) }, { weight: 1, arbitrary: anything }) : values(schema);

  const given = ({ name, required, schema }: Parameter): Arbitrary<readonly [string, unknown] | null> => {
    const present = value(schema).map((chosen) => [name, chosen] as const);
    if (required) return present;
    return fc.oneof({ weight: 9, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: present });
  };
  const place = (where: Parameter["in"]) =>
    fc
      .tuple(...operation.parameters.filter((parameter) => parameter.in === where).map(given))
      .map((all) => all.filter((each) => each !== null));
  const strays = isWild ? fc.array(fc.tuple(word, anything), { maxLength: 1 }) : fc.constant([]);

  return fc
    .record({
      path: place("path"),
      query: fc.tuple(place("query"), strays).map((all) => all.flat()),
      headers: place("header"),
      body: bodyOf(operation, value, isWild),
    })
    .map(({ path, query, headers, body }) => ({
      operation,
      url: toUrl(operation.path, path, query),
      headers: {
        ...Object.fromEntries(headers.map(([name, chosen]) => [name, asHeader(chosen)])),
        ...(body !== null && { "Content-Type": "application/json" }),
      },
      body,
    }));
}

function bodyOf({ body }: Operation, value: (schema: Json) => Arbitrary<unknown>, isWild: boolean) {
  if (body === null) return fc.constant(null);
  const documented = value(body).map((chosen) => JSON.stringify(chosen) ?? "");
  return isWild ? fc.oneof({ weight: 5, arbitrary: documented }, { weight: 1, arbitrary: fc.string() }) : documented;
}

function toUrl(template: string, path: readonly Given[], query: readonly Given[]): string {
  const filled = path.reduce((url, [name, chosen]) => url.replace(`{${name}}`, toSegment(chosen)), template);
  const parameters = query.flatMap(([name, chosen]) =>
    (Array.isArray(chosen) ? chosen : [chosen]).map(
      (each) => `${encodeURIComponent(name)}=${encodeURIComponent(toText(each))}`,
    ),
  );
  return parameters.length > 0 ? `${filled}?${parameters.join("&")}` : filled;
}

/** An empty one, and those of dots alone, would be those of another address. */
function toSegment(value: unknown): string {
  const text = toText(value);
  return /^\.{0,2}$/.test(text) ? "0" : encodeURIComponent(text);
}

type Given = readonly [name: string, value: unknown];

function toText(value: unknown): string {
  return (typeof value === "string" ? value : (JSON.stringify(value) ?? "")).toWellFormed();
}

/** Removes the characters that Node refuses in a header. */
function asHeader(value: unknown): string {
  return toText(value)
    .replace(/[^\x20-\x7e]/g, "")
    .trim();
}

const word = fc.constantFrom("id", "x", "sort", "fields", "page", "limit", "version", "name", "a.b", "__proto__");
const anything = fc.oneof(
  fc.string({ unit: "binary", maxLength: 12 }),
  fc.integer(),
  fc.double(),
  fc.constantFrom(
    null,
    true,
    "",
    "null",
    "1e400",
    "-1",
    "9".repeat(30),
    "'; drop table users; --",
    "%00",
    "\u0000",
    "a:b:c",
    "*",
  ),
  fc.jsonValue({ maxDepth: 2 }),
);

/** Values that a schema allows; whole numbers are mostly small, so that they often name rows that are there. */
function makeValues(resolve: (schema: Json) => Json): (schema: Json) => Arbitrary<unknown> {
  const values = (given: Json): Arbitrary<unknown> => {
    const schema = resolve(given);
    if (schema.const !== undefined) return fc.constant(schema.const);
    if (schema.enum) return fc.constantFrom(...schema.enum);
    const choices = schema.anyOf ?? schema.oneOf;
    if (choices) return fc.oneof(...choices.map(values));
    if (Array.isArray(schema.type)) return fc.oneof(...schema.type.map((type: string) => values({ ...schema, type })));
    switch (schema.type) {
      case "null":
        return fc.constant(null);
      case "boolean":
        return fc.boolean();
      case "integer":
        return fc.oneof({ weight: 5, arbitrary: fc.nat({ max: 12 }) }, { weight: 1, arbitrary: fc.maxSafeNat() });
      case "number":
        return fc.double({ noNaN: true, noDefaultInfinity: true });
      case "string":
        return texts(schema);
      case "array":
        return fc.array(values(schema.items ?? {}), { minLength: schema.minItems ?? 0, maxLength: 3 });
      case "object":
        return objects(schema);
      default:
        return fc.jsonValue({ maxDepth: 1 });
    }
  };

  const objects = ({ properties = {}, required = [] }: Json): Arbitrary<unknown> => {
    const model = Object.fromEntries(Object.entries<Json>(properties).map(([name, schema]) => [name, values(schema)]));
    return fc.record(model, { requiredKeys: required });
  };
  return values;
}

function texts({ format, examples, maxLength = 40 }: Json): Arbitrary<unknown> {
  const letters = fc
    .string({ unit: "grapheme", maxLength: Math.min(maxLength, 40) })
    .filter((text) => !text.includes("\0"));
  switch (format) {
    case "uuid":
      return fc.uuid();
    case "date":
      return fc.date({ noInvalidDate: true, min: new Date(0) }).map((date) => date.toISOString().slice(0, 10));
    case "date-time":
    case "date-time-local":
      return fc.date({ noInvalidDate: true, min: new Date(0) }).map((date) => date.toISOString());
    case "email":
      return fc.emailAddress();
  }
  return examples
    ? fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...examples) }, { weight: 1, arbitrary: letters })
    : letters;
}
