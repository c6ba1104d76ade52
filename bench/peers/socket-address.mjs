/**
 * The clients of Postgres in these programs want a host in the address, and take the socket's folder as an option.
 *
 * @param {string} address
 */
export function parseSocketAddress(address) {
  const url = new URL(address.replace("@/", "@localhost/"));
  const { host, port } = Object.fromEntries(url.searchParams);
  url.search = "";
  return { url: url.href, host, port: Number(port) };
}
