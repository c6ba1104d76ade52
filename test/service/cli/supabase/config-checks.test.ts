import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Config } from "../../../../config/index.ts";
import { readConfigFindings } from "../../../../service/cli/supabase/config-checks.ts";
import { cloneDatabase } from "../../../database.ts";

const CONFIG = `
[auth]
enable_signup = true
enable_anonymous_sign_ins = true
enable_manual_linking = false
[auth.hook.custom_access_token]
enabled = true
uri = "pg-functions://postgres/public/add_claims"
[auth.hook.before_user_created]
enabled = true
uri = "pg-functions://postgres/auth/uid"
[auth.hook.send_sms]
enabled = true
uri = "https://example.org/sms"
`;

test("what config.toml asks for is compared with the settings and the database", async () => {
  const folder = await mkdtemp(join(tmpdir(), "config-checks-"));
  const database = await cloneDatabase("platform");
  const config = { anonymousSignIns: false, manualLinking: false, signUps: true } as Config;
  try {
    expect(await readConfigFindings(folder, config, database.ownerUrl)).toEqual([]);
    await mkdir(join(folder, "supabase"));
    await writeFile(join(folder, "supabase/config.toml"), CONFIG);
    expect((await readConfigFindings(folder, config, database.ownerUrl)).map(({ problem }) => problem)).toEqual([
      "supabase/config.toml asks for what AUTH_ANONYMOUS_SIGN_INS has off.",
      "supabase/config.toml names the hook public.add_claims, which does not exist.",
    ]);
  } finally {
    await database.drop();
    await rm(folder, { recursive: true });
  }
});
