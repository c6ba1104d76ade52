/** Returns the same text for all spellings of a name: `author_id` and `authorId` are one. */
export function normalName(name: string): string {
  return name
    .replaceAll("ß", "ss")
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, "");
}
