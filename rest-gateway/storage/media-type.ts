type MediaType = {
  /** The type without parameters. */
  readonly essence: string;
  /** The type as a header of a response, which no client reads as several types. */
  readonly header: string;
};

export const OPAQUE_TYPE = "application/octet-stream";
/** The types that consist of others. */
const CONTAINER = /^(?:multipart|message)\//i;
const TYPE = /^\s*([a-z]+\/[\w!#$&^.+-]+)\s*(?:;|$)/i;
/** Commas and backslashes are excluded, because browsers split headers at commas, and differ in where a quoted text ends. */
const PARAMETERS = /^(?:;\s*(?:[\w!#$%&'*+.^`|~-]+=(?:[\w!#$%&'*+.^`|~-]+|"[^"\\,]*")\s*)?)*$/;

/** Reads the type of a row, which anybody whom a policy permits may have written. */
export function readMediaType(sent: string): MediaType {
  const [, essence] = TYPE.exec(sent) ?? [];
  if (essence === undefined || CONTAINER.test(essence)) return { essence: OPAQUE_TYPE, header: OPAQUE_TYPE };
  const semicolon = sent.indexOf(";");
  const isPlain = semicolon === -1 || PARAMETERS.test(sent.slice(semicolon));
  return { essence, header: isPlain ? sent : essence };
}

/** Returns true for a list of types: a comma outside of quotes. */
export function namesSeveralTypes(sent: string): boolean {
  return sent.replace(/"[^"]*"/g, "").includes(",");
}
