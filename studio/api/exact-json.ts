// The third parameter is part of ES2026; TypeScript does not describe it yet.
type SourceReviver = (key: string, value: unknown, context?: { readonly source?: string }) => unknown;
type JsonWithSource = {
  parse(text: string, reviver: SourceReviver): unknown;
  rawJSON?(source: string): unknown;
};
const jsonWithSource = JSON as unknown as JsonWithSource;

/** Parses JSON with numbers as texts, because bigint and numeric would lose digits. */
export function parseWithNumberTexts(text: string): unknown {
  return jsonWithSource.parse(text, (_key, value, context) =>
    typeof value === "number" ? (context?.source ?? String(value)) : value,
  );
}

/** Parses JSON so that `JSON.stringify` writes its numbers with the same digits. */
export function parseExactly(text: string): unknown {
  return jsonWithSource.parse(text, (_key, value, context) =>
    typeof value === "number" && context?.source !== undefined && context.source !== String(value)
      ? (jsonWithSource.rawJSON?.(context.source) ?? value)
      : value,
  );
}
