const MAX_DEPTH = 6;

/** A schema in the notation of TypeScript: `{ id: integer; name?: string | null }`. */
export function typeText(schema, resolve, depth = 0) {
  if (depth > MAX_DEPTH) return "…";
  const resolved = resolve(schema) ?? {};
  const alternative = (part) => typeText(part, resolve, depth);
  const { const: constant, enum: values, anyOf, oneOf, allOf, type, format } = resolved;
  if (constant !== undefined) return JSON.stringify(constant);
  if (values) return values.map((value) => JSON.stringify(value)).join(" | ");
  const choices = anyOf ?? oneOf;
  if (choices) return choicesText(choices, alternative);
  if (allOf) return allOf.map(alternative).join(" & ");
  const types = [type ?? (resolved.properties ? "object" : "any")].flat();
  const texts = types.map((name) => {
    if (name === "array") return arrayText(alternative(resolved.items ?? {}));
    return name === "object" ? objectText(resolved, resolve, depth) : name;
  });
  return texts.join(" | ") + (format ? ` (${format})` : "");
}

function choicesText(choices, alternative) {
  const [one, several] = choices;
  const isOneOrSeveral = choices.length === 2 && one.$ref !== undefined && several.items?.$ref === one.$ref;
  if (isOneOrSeveral) return `${alternative(one)}\nor an array of these`;
  return [...new Set(choices.map(alternative))].join(" | ");
}

function arrayText(item) {
  return /[ |&]/.test(item) && !item.startsWith("{") ? `(${item})[]` : `${item}[]`;
}

function objectText({ properties, required = [], additionalProperties }, resolve, depth) {
  if (!properties) {
    return additionalProperties ? `{ [name]: ${typeText(additionalProperties, resolve, depth + 1)} }` : "object";
  }
  const indent = "  ".repeat(depth);
  const lines = Object.entries(properties).map(([key, property]) => {
    const about = property.description ? `  // ${property.description.replaceAll("\n", " ")}` : "";
    const mark = required.includes(key) ? "" : "?";
    return `${indent}  ${key}${mark}: ${typeText(property, resolve, depth + 1)}${about}\n`;
  });
  return `{\n${lines.join("")}${indent}}`;
}

/** A value that a schema describes: its example, or one with the required properties. */
export function exampleOf(schema, resolve, depth = 0) {
  const resolved = resolve(schema) ?? {};
  if (depth > MAX_DEPTH) return null;
  const nested = (part) => exampleOf(part, resolve, depth + 1);
  const { examples, default: standard, const: constant, enum: values, anyOf, oneOf, allOf, type } = resolved;
  const given = examples?.[0] ?? standard ?? constant ?? values?.[0];
  if (given !== undefined) return given;
  const choices = anyOf ?? oneOf;
  if (choices) return nested(choices[0]);
  if (allOf) return Object.assign({}, ...allOf.map(nested));
  return exampleOfType([type].flat()[0], resolved, nested);
}

function exampleOfType(type, { properties = {}, required = [], items, format, minimum }, nested) {
  switch (type) {
    case "array":
      return items ? [nested(items)] : [];
    case "object": {
      const names = required.length > 0 ? required : Object.keys(properties);
      return Object.fromEntries(names.map((name) => [name, nested(properties[name])]));
    }
    case "integer":
    case "number":
      return minimum ?? 1;
    case "boolean":
      return true;
    case "string":
      return EXAMPLES_BY_FORMAT[format] ?? "text";
    default:
      return null;
  }
}

const EXAMPLES_BY_FORMAT = {
  date: "2026-01-31",
  "date-time": "2026-01-31T12:00:00Z",
  email: "ada@example.org",
  time: "12:00:00",
  uri: "https://example.org/",
  uuid: "7d444840-9dc0-11d1-b245-5ffdce74fad2",
};
