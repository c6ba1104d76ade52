import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Service } from "../../../service/wiring/service.ts";
import { useDatabase } from "../../database.ts";
import { REPOSITORY } from "../../repository.ts";
import { serve, useService } from "../../serve.ts";

const PREFIX = "/admin/v1";
const SOURCES = join(REPOSITORY, "operations/admin");

const database = useDatabase();
const service = useService({ database, settings: { STUDIO: "administrators" } });

async function documentedRoutes({ url }: Service): Promise<string[]> {
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as { paths: Record<string, object> };
  return Object.entries(document.paths)
    .filter(([path]) => path.startsWith(PREFIX))
    .flatMap(([path, item]) => Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`))
    .sort();
}

/** The keys of the objects that the route modules make. */
function servedRoutes(): string[] {
  const texts = readdirSync(SOURCES).map((file) => readFileSync(join(SOURCES, file), "utf8"));
  const names = texts.flatMap((text) => [...text.matchAll(/^\s+"([A-Z]+) (\/[^"]*)": /gm)]);
  return names.map(([, method, path]) => `${method} ${PREFIX}${path}`).sort();
}

describe("the document of the interfaces", () => {
  test("has each route of administrators", async () => {
    const documented = await documentedRoutes(service);
    expect(documented).toEqual(servedRoutes());
    expect(documented).toContain("GET /admin/v1/running");
  });

  test("has none where Studio is off, and none is served then", async () => {
    const off = await serve(database, { STUDIO: "off" });
    try {
      expect(await documentedRoutes(off)).toEqual([]);
      expect((await fetch(`${off.url}${PREFIX}/running`)).status).toBe(404);
    } finally {
      await off.stop();
    }
  });
});
