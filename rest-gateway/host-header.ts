import type { IncomingMessage } from "node:http";

/** Whether there are several, of which a proxy in front may have gone by another than the one that is read here. */
export function hasSeveralHosts({ rawHeaders }: Pick<IncomingMessage, "rawHeaders">): boolean {
  let hosts = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!;
    if (name.length === 4 && /^host$/i.test(name)) hosts++;
  }
  return hosts > 1;
}
