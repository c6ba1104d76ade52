/** What a text stands for in a document; undefined when it is no JSON. */
export function parseLiteral(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
