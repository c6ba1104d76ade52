/**
 * As in Deno, a response of fetch has no header of an encoding that was removed from its body: functions return such
 * responses as their own.
 */
export function installFetch(): void {
  const fetchEncoded = globalThis.fetch;
  globalThis.fetch = async (input, init) => {
    const response = await fetchEncoded(input, init);
    if (!response.headers.has("content-encoding") || !response.body) return response;
    const headers = new Headers(response.headers);
    headers.delete("content-encoding");
    headers.delete("content-length");
    const { status, statusText, url, redirected, type } = response;
    const decoded = new Response(response.body, { status, statusText, headers });
    const members = Object.entries({ url, redirected, type });
    return Object.defineProperties(
      decoded,
      Object.fromEntries(members.map(([name, value]) => [name, { value, configurable: true }])),
    );
  };
}
