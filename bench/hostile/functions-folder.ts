import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Functions of the attacked service: each returns the length of its body, or matches a pattern without an end. */
export const FUNCTION_NAMES: readonly string[] = Array.from({ length: 25 }, (_, index) => `length${index}`);

const CODE = `
  Deno.serve(async (req) => {
    if (new URL(req.url).searchParams.has("pattern")) /^(a+)+$/.test("a".repeat(60) + "b");
    const bytes = await req.arrayBuffer();
    return Response.json({ length: bytes.byteLength });
  });`;

export async function writeFunctions(folder: string): Promise<void> {
  for (const name of FUNCTION_NAMES) {
    await mkdir(join(folder, name), { recursive: true });
    await writeFile(join(folder, name, "index.ts"), CODE);
  }
}
