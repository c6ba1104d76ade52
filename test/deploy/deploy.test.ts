import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { SETTINGS } from "../../config/settings.ts";
import { useDatabase } from "../database.ts";
import { useFixture, useFolder } from "../fixture.ts";
import { startProgram } from "../program.ts";
import { REPOSITORY } from "../repository.ts";
import { SECRET } from "../secret.ts";

const execute = promisify(execFile);
const DEPLOY = join(REPOSITORY, "deploy");
const ANALYZE = "/usr/bin/systemd-analyze";
/** Variables of shells and of other images. */
const OF_OTHERS =
  /^(HA_|REPAIR_|PATRONI_|NODE_[ABC]$|GATEWAY_[ABC]$|(WRITE|HTTP)_ADDRESS$|ADMIN_SOCKET$|ON_ERROR_STOP$|PGCONNECT_TIMEOUT$|POSTGRES_|LOGIN_PASSWORD$|ALL$|CMD$|COPY$|DEBIAN_|AF_)/;

const read = (name: string) => readFile(join(DEPLOY, name), "utf8");
const uncommented = (text: string) => text.replace(/^\s*#.*$/gm, "");

/** The lines of the image's recipe, those that go on below joined. */
async function instructions(): Promise<string[]> {
  const text = uncommented(await read("../Dockerfile")).replaceAll("\\\n", " ");
  return text.split("\n").filter((line) => line.trim() !== "");
}

describe("the container's image", () => {
  const folder = useFolder("content-service-image-");
  beforeAll(async () => {
    for (const line of await instructions()) {
      if (!line.startsWith("COPY ")) continue;
      const paths = line.split(/\s+/).slice(1);
      const target = join(folder, paths.pop()!);
      for (const path of paths) {
        await cp(join(REPOSITORY, path), paths.length > 1 ? join(target, path) : target, { recursive: true });
      }
    }
    await symlink(join(REPOSITORY, "node_modules"), join(folder, "node_modules"));
  });
  const database = useDatabase();
  const environment = {
    DATABASE_URL: database.url,
    OWNER_DATABASE_URL: database.ownerUrl,
    JWT_SECRET: SECRET,
    LOG_LEVEL: "error",
  };
  const program = useFixture(() => startProgram({ ...environment, NODE_ENV: "production" }, { root: folder }));

  test("contains everything that the service needs", async () => {
    expect(program.logged()).toBe("");
    for (const path of [
      "/health",
      "/docs/errors",
      "/docs/guide/deployment",
      "/openapi.json",
      "/graphiql",
      "/studio/app/main.js",
    ]) {
      expect([path, (await fetch(program.url + path)).status]).toEqual([path, 200]);
    }
  });

  test("imports no development dependency", async () => {
    const { dependencies, optionalDependencies } = JSON.parse(
      await readFile(join(folder, "package.json"), "utf8"),
    ) as Readonly<Record<string, object>>;
    const files = (await readdir(folder, { recursive: true })).filter(
      (file) => file.endsWith(".ts") && !file.startsWith("node_modules"),
    );
    const imported = new Set<string>();
    for (const file of files) {
      const text = await readFile(join(folder, file), "utf8");
      // Types are gone by the time.
      for (const [, name] of text.matchAll(/^(?:import|export) (?!type )[^;]*?from "((?:@[\w-]+\/)?[a-z][\w.-]*)/gm)) {
        if (!name!.startsWith("node:")) imported.add(name!);
      }
    }
    imported.delete("node");
    expect(imported).toContain("pg");
    expect([...imported].filter((name) => !(name in { ...dependencies, ...optionalDependencies }))).toEqual([]);
  });

  test("is healthy by its own check, and unhealthy without a response", async () => {
    const line = (await instructions()).find((instruction) => instruction.startsWith("HEALTHCHECK"))!;
    const [command, ...words] = JSON.parse(line.slice(line.indexOf("["))) as [string, ...string[]];
    expect(command).toBe("node");
    const check = (url: string) =>
      execute(
        process.execPath,
        words.map((word) => word.replace("http://127.0.0.1:3000", url)),
      );
    await check(program.url);
    await expect(check("http://127.0.0.1:1")).rejects.toMatchObject({ code: 1 });
  });

  test.each(["compose.yaml", "../Dockerfile", "kubernetes.yaml"])(
    "contains the programs that %s starts",
    async (name) => {
      const programs = (await read(name)).match(/\b(?:[\w-]+\/)*[\w-]+\.[jt]s\b/g)!;
      expect(programs).not.toEqual([]);
      for (const file of programs) expect([file, existsSync(join(folder, file))]).toEqual([file, true]);
    },
  );
});

test("every setting in the files exists", async () => {
  const known = new Set(Object.values(SETTINGS).flatMap(({ names }) => names as readonly string[]));
  const named = new Set<string>();
  for (const file of await readdir(DEPLOY, { recursive: true })) {
    if ((await stat(join(DEPLOY, file))).isDirectory()) continue;
    for (const [name] of (await read(file)).matchAll(/\b[A-Z][A-Z\d]+(?:_[A-Z\d]+)+\b/g)) named.add(name);
  }
  expect(named).toContain("DRAIN_TIMEOUT_SECONDS");
  expect([...named].filter((name) => !known.has(name) && !OF_OTHERS.test(name))).toEqual([]);
});

test("everything listens and connects on the default ports", async () => {
  const port = SETTINGS.port.fallback!;
  expect(await read("../Dockerfile")).toContain(`EXPOSE ${port}`);
  expect(await read("kubernetes.yaml")).toContain(`containerPort: ${port}`);
  expect(await read("nginx.conf")).toContain(`server 127.0.0.1:${port};`);
});

test("Prometheus scrapes the admin port that every file opens", async () => {
  const config = await read("prometheus.yml");
  const scraped = [...config.matchAll(/(?:127\.0\.0\.1:|port: |regex: ")(\d+)/g)].map(([, port]) => port!);
  expect(scraped).toHaveLength(3);
  const opened = await Promise.all(
    ["compose.yaml", "kubernetes.yaml", "content-service.service"].map(async (name) => {
      return /ADMIN_PORT(?:: |=|, value: ")(\d+)/.exec(await read(name))?.[1];
    }),
  );
  expect(new Set([...scraped, ...opened])).toEqual(new Set(["3001"]));
  expect(await read("kubernetes.yaml")).toContain("{name: admin, containerPort: 3001}");
});

test("every alert has a severity", async () => {
  const alerts = (await read("prometheus-rules.yml")).split("- alert: ").slice(1);
  expect(alerts.length).toBeGreaterThan(5);
  for (const alert of alerts) expect(alert).toMatch(/^\w+\n(?: {8}.*\n)*? {8}labels: \{severity: (?:page|ticket)\}\n/);
});

test("features that need a version of Kubernetes name it", async () => {
  expect(await read("kubernetes.yaml")).toMatch(/# .*Kubernetes 1\.30 or newer.*\n +lifecycle: \{preStop: \{sleep:/);
});

describe("the commands at the head of compose.yaml", () => {
  const commands = async () =>
    (await read("compose.yaml"))
      .split("\nname:", 1)[0]!
      .split("\n")
      .filter((line) => line.startsWith("#   "))
      .map((line) => line.slice(4));

  test("create each required secret, once, in a file that only its owner may read", async () => {
    const folder = await mkdtemp(join(tmpdir(), "content-service-compose-"));
    try {
      await mkdir(join(folder, "deploy"));
      const preparations = (await commands()).filter((line) => !line.includes("compose"));
      await execute("sh", ["-ec", preparations.join("\n")], { cwd: folder });
      const file = join(folder, "deploy/secrets.env");
      expect((await stat(file)).mode & 0o077).toBe(0);
      const made = (await readFile(file, "utf8")).trim().split("\n");
      const needed = (await read("compose.yaml")).matchAll(/\$\{(\w+):\?\}/g);
      expect(new Set(made.map((line) => line.split("=", 1)[0]!))).toEqual(
        new Set([...needed].map(([, name]) => name!)),
      );
      for (const line of made) expect(line).toMatch(/^\w+=[0-9a-f]{64}$/);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  test("start it with those, and create none", async () => {
    const up = (await commands()).filter((line) => line.endsWith(" up"));
    expect(up).toEqual(["podman compose --env-file deploy/secrets.env -f deploy/compose.yaml up"]);
  });
});

test("every supervisor waits longer than the shutdown takes", async () => {
  const longest = Number(SETTINGS.drainTimeout.fallback);
  const patience = async (file: string, pattern: RegExp) => Number(pattern.exec(await read(file))![1]);
  expect(await patience("kubernetes.yaml", /terminationGracePeriodSeconds: (\d+)/)).toBeGreaterThan(longest + 5);
  expect(await patience("content-service.service", /TimeoutStopSec=(\d+)/)).toBeGreaterThan(longest + 5);
});

test.runIf(existsSync(ANALYZE))("systemd accepts the unit", async () => {
  const folder = await mkdtemp(join(tmpdir(), "content-service-unit-"));
  try {
    const file = join(folder, "content-service.service");
    // systemd-analyze would report a program that is not installed here.
    const unit = (await read("content-service.service")).replace(/^ExecStart=\S+/m, `ExecStart=${process.execPath}`);
    await writeFile(file, unit);
    const { stderr } = await execute(ANALYZE, ["verify", "--man=no", file]);
    expect(stderr.split("\n").filter((line) => line.includes(file))).toEqual([]);
    await writeFile(file, unit.replace("TimeoutStopSec=", "TimeoutStop="));
    expect((await execute(ANALYZE, ["verify", "--man=no", file])).stderr).toMatch(/Unknown key .*'TimeoutStop'/);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
