import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { REPOSITORY } from "../repository.ts";

// The image of Node is pulled: where that is impossible, there is nothing to build on.

const BUILDAH = "/usr/bin/buildah";
const BASE = "docker.io/library/node:24-bookworm-slim";
const MAX_LAYERS_BYTES = 120e6;

const storage = await mkdtemp(join(tmpdir(), "content-service-image-"));
const run = promisify(execFile);

/** Runs buildah with images of its own. IMAGES names the folder of a storage that has the base already. */
function buildah(...words: string[]): Promise<{ stdout: string }> {
  const root = process.env.IMAGES ?? storage;
  const folders = ["--storage-driver", "vfs", "--root", root, "--runroot", join(storage, "run")];
  return run(BUILDAH, [...folders, ...words], { cwd: REPOSITORY, maxBuffer: 1e8 });
}

const canBuild =
  existsSync(BUILDAH) &&
  (await buildah("pull", "--policy", "missing", BASE).then(
    () => true,
    () => false,
  ));

afterAll(() => rm(storage, { recursive: true, force: true }));

describe.skipIf(!canBuild)("the image that buildah makes of the Dockerfile", () => {
  let container: string;
  beforeAll(async () => {
    await buildah("build", "--format", "docker", "--isolation", "chroot", "--network", "host", "-t", "tested", ".");
    container = (await buildah("from", "tested")).stdout.trim();
  });
  const inside = (...words: string[]) =>
    buildah("run", "--isolation", "chroot", "--user", "node", container, "--", ...words);

  test("runs as a user without rights, and has a health check", async () => {
    const { stdout } = await buildah("inspect", "--type", "image", "tested");
    const { config } = JSON.parse(stdout).Docker;
    expect(config.User).toBe("node");
    expect(config.Healthcheck.Test).toEqual(["CMD", "node", "-e", expect.stringContaining("/health/ready")]);
  });

  test("has the code of its packages for this system, and starts", async () => {
    const hash = 'console.log(require("@node-rs/bcrypt").hashSync("a", 4).slice(0, 4), process.getuid())';
    expect((await inside("node", "-e", hash)).stdout).toMatch(/^\$2\w\$ [1-9]\d*\n$/);
    // It has no database, and says so.
    const { stdout, stderr } = await inside("node", "server.js").catch((error) => error);
    expect(`${stdout}${stderr}`).toContain("DATABASE_URL");
  });

  test(`adds less than ${MAX_LAYERS_BYTES / 1e6} MB to the image of Node`, async () => {
    const { stdout } = await buildah("run", "--isolation", "chroot", container, "--", "du", "-sb", "/app");
    expect(Number.parseInt(stdout, 10)).toBeLessThan(MAX_LAYERS_BYTES);
  });
});
