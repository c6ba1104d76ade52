const BLOCK = /^```(\w+)[^\n]*\n(.*?)^```$\n?/gms;
const FOLLOWED = ["sh", "text", "json"];

/**
 * A page of the reference with nothing but its requests and responses. A document of GraphQL becomes the request that the page shows once:
 * `$JSON` is the content type, `$TOKEN` the token of the caller.
 */
export function requestsOf(page: string): string {
  return page.replaceAll(BLOCK, (block, language: string, text: string) => {
    if (language === "graphql") return `\`\`\`sh\n${graphqlCommand(text)}\n\`\`\`\n`;
    return FOLLOWED.includes(language) ? block : "";
  });
}

function graphqlCommand(document: string): string {
  const body = JSON.stringify({ query: document }).replaceAll("'", String.raw`'\''`);
  return `curl -s $URL/graphql -H "$JSON" -H "Authorization: Bearer $TOKEN" -d '${body}'`;
}

/** The statements that the page shows as SQL: the tables of its requests. */
export function statementsOf(page: string): string[] {
  return [...page.matchAll(BLOCK)].filter(([, language]) => language === "sql").map(([, , text]) => text!);
}
