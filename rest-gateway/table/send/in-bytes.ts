import type { Body, GatewayResponse } from "../../http.ts";

const BEYOND_ASCII = /[^\t -~]/;

export function isAscii(text: string): boolean {
  return !BEYOND_ASCII.test(text);
}

/**
 * Headers as the bytes that UTF-8 has for them, as PostgREST sends them; node writes a byte for each character. In front of
 * a string it would write UTF-8 once more, so the body is bytes too then.
 */
export function inBytes<B extends Body>(response: GatewayResponse<B>): GatewayResponse<B | Buffer> {
  const { headers, body } = response;
  if (Object.values(headers).flat().every(isAscii)) return response;
  const written = Object.entries(headers).map(([name, value]) => [
    name,
    typeof value === "string" ? bytesOf(value) : value.map(bytesOf),
  ]);
  return {
    ...response,
    headers: Object.fromEntries(written),
    body: typeof body === "string" ? Buffer.from(body) : body,
  };
}

function bytesOf(text: string): string {
  return Buffer.from(text).toString("latin1");
}
