import { describe, expect, test } from "vitest";
import { writeBanner } from "../../service/banner.ts";

const CONFIG = {
  publicUrl: null,
  studio: "open",
  graphqlExplorer: true,
  databaseUrl: null,
  dataDir: "/data",
  usersAccess: "open",
  usersAccessReason: "embedded Postgres on a loopback address",
} as const;
const FACTS = {
  config: CONFIG,
  url: "http://127.0.0.1:3000",
  workers: null,
  adminUrl: null,
  hasUsers: true,
  currentFolder: null,
  seconds: "3.1",
};

describe("the banner of a start", () => {
  test("says where the service is, and what is open to whom", () => {
    expect(writeBanner(FACTS)).toBe(`
  address    http://127.0.0.1:3000
  studio     http://127.0.0.1:3000/studio (open to browsers on this machine, and to administrators)
  health     http://127.0.0.1:3000/health
  graphql    http://127.0.0.1:3000/graphql
  explorer   http://127.0.0.1:3000/graphiql
  data       /data (embedded Postgres)
  users      open: everybody reads and changes users and drafts (embedded Postgres on a loopback address)
  keys       npm run keys
  psql       npm run psql

  ready in 3.1 s`);
  });

  test("has the addresses of PUBLIC_URL, beside the one that the service listens on", () => {
    const config = {
      ...CONFIG,
      publicUrl: "https://api.example.org",
      studio: "administrators",
      databaseUrl: "postgres://db/app",
      usersAccess: "owner",
      usersAccessReason: "PUBLIC_URL",
    } as const;
    const banner = writeBanner({ ...FACTS, config, workers: 4, adminUrl: "http://127.0.0.1:9090" });
    expect(banner.split("\n").slice(1, 10)).toEqual([
      "  address    http://127.0.0.1:3000",
      "  public     https://api.example.org",
      "  studio     https://api.example.org/studio (administrators only)",
      "  health     https://api.example.org/health",
      "  graphql    https://api.example.org/graphql",
      "  explorer   https://api.example.org/graphiql",
      "  workers    4",
      "  metrics    http://127.0.0.1:9090/metrics",
      "  data       DATABASE_URL",
    ]);
    expect(banner).toContain("owner: only owners read and change users and drafts (PUBLIC_URL)");
  });

  test("has no line for what is off, and names the current migration under dev", () => {
    const config = { ...CONFIG, studio: "off", graphqlExplorer: false } as const;
    const banner = writeBanner({ ...FACTS, config, hasUsers: false, currentFolder: "db/migrations/current" });
    expect(banner).not.toMatch(/studio|explorer|users/);
    expect(banner).toContain("  migration  db/migrations/current, applied on every save\n");
  });
});
