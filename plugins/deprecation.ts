type Tag = null | true | string | readonly (string | true)[] | undefined;

const UNEXPLAINED = "No longer supported";

/** What `@deprecated Use that instead.` says. */
export function reasonOf(tag: Tag): string | undefined {
  if (tag == null) return undefined;
  const lines = [tag].flat().filter((line) => typeof line === "string");
  return lines.join("\n") || UNEXPLAINED;
}

/** What a tag of a whole says about one of its parts: `@deprecatedValue ARCHIVED Delete it.` */
export function reasonFor(tag: Tag, part: string): string | undefined {
  const lines = [tag].flat().filter((line) => typeof line === "string");
  const line = lines.find((text) => text === part || text.startsWith(`${part} `));
  return line === undefined ? undefined : line.slice(part.length).trim() || UNEXPLAINED;
}
