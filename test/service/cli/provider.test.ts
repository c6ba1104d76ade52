import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { makeProviders } from "../../../accounts/federation/providers.ts";
import { makeTokenKeys } from "../../../accounts/identity/token-keys.ts";
import { openAccounts } from "../../accounts/open-accounts.ts";
import { useFixture, useFolder } from "../../fixture.ts";
import { PROVIDER_CERTIFICATE } from "../../rest-gateway/sign-in/saml-keys.ts";
import { SECRET } from "../../secret.ts";
import { type CommandResult, runCommand } from "./run-command.ts";

const CLIENT_SECRET = "a-secret-of-the-client";

const opened = useFixture(openAccounts);
const folder = useFolder("provider-");
beforeAll(async () => {
  await writeFile(join(folder, "secret"), `${CLIENT_SECRET}\n`);
  await writeFile(join(folder, "certificate.pem"), PROVIDER_CERTIFICATE);
  await writeFile(join(folder, "empty.pem"), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
});

function run(line: string): Promise<CommandResult> {
  const words = line.split(" ").map((word) => word.replace("FOLDER", folder));
  return runCommand("provider", words, opened.database);
}

describe("npm run provider", () => {
  test("adds a provider of each protocol, lists, disables, enables and removes them, and prints no secret", async () => {
    const added = [
      await run(
        "add --kind oidc --name one --issuer https://one.example --client-id c --client-secret-file FOLDER/secret --title The-One",
      ),
      await run(
        `add --kind oauth2 --name two --issuer https://two.example --client-id c --client-secret ${CLIENT_SECRET} --auth-url https://two.example/oauth/ --subject-claim id --no-sign-ups --trust-email`,
      ),
      await run(
        "add --kind saml --name three --issuer urn:three --entry-point https://three.example/sso --certificate FOLDER/certificate.pem --logout-url https://three.example/slo",
      ),
    ];
    expect(added.map(({ code, stderr }) => [code, stderr])).toEqual(added.map(() => [0, ""]));
    const keys = makeTokenKeys({ jwtSecret: SECRET, jwtSecretIsBase64: false, jwtPrivateKey: null });
    const providers = makeProviders(opened.asOwner, async () => keys);
    expect(await providers.find("one")).toEqual({
      name: "one",
      kind: "oidc",
      issuer: "https://one.example",
      clientId: "c",
      secret: CLIENT_SECRET,
      settings: {},
    });
    expect(await providers.find("two")).toMatchObject({
      secret: CLIENT_SECRET,
      settings: {
        authorization_endpoint: "https://two.example/oauth/authorize",
        token_endpoint: "https://two.example/oauth/token",
        userinfo_endpoint: "https://two.example/oauth/userinfo",
        claims: { subject: "id" },
      },
    });
    expect((await providers.find("three")).settings).toEqual({
      entry_point: "https://three.example/sso",
      logout_url: "https://three.example/slo",
      certificates: [PROVIDER_CERTIFICATE.trim()],
    });

    await run("disable two");
    const { stdout } = await run("list");
    expect(stdout).toMatch(/one.*The-One.*enabled/);
    expect(stdout).toMatch(/two.*disabled/);
    await expect(providers.find("two")).rejects.toMatchObject({ kind: "notFound", code: "RESOURCE_NOT_FOUND" });
    await run("enable two");
    expect((await providers.find("two")).name).toBe("two");
    await run("remove two");
    expect((await run("list")).stdout).not.toContain("two");

    const { rows } = await opened.owner.query<{ line: string }>(
      "select to_jsonb(providers)::text as line from auth.providers union all select to_jsonb(audit_log)::text from auth.audit_log",
    );
    const shown = [stdout, ...added.map((each) => each.stdout), ...rows.map(({ line }) => line)].join("\n");
    expect(shown).toContain("provider.removed");
    expect(shown).not.toContain(CLIENT_SECRET);
  });

  test.each([
    ["", 2, "Specify an action"],
    ["list all", 2, 'Unexpected argument "all".'],
    ["add", 2, "--kind"],
    ["add --kind ldap --name x", 2, "--kind"],
    ["add --kind oidc --name x", 2, "--issuer"],
    ["add --kind oidc --name x --issuer https://x.example", 2, "--client-id"],
    ["add --kind oauth2 --name x --issuer https://x.example --client-id c", 2, "--auth-url"],
    ["add --kind saml --name x --issuer urn:x", 2, "--entry-point"],
    [
      "add --kind saml --name x --issuer urn:x --entry-point https://x.example --certificate FOLDER/secret",
      2,
      "no certificate",
    ],
    [
      "add --kind saml --name x --issuer urn:x --entry-point https://x.example --certificate FOLDER/empty.pem",
      2,
      "no certificate",
    ],
    [
      "add --kind saml --name x --issuer urn:x --entry-point https://x.example --certificate FOLDER/certificate.pem --key FOLDER/secret",
      2,
      "no private key",
    ],
    [
      "add --kind saml --name x --issuer urn:x --entry-point x --certificate FOLDER/certificate.pem",
      2,
      "--entry-point",
    ],
    ["add --kind oidc --name x --issuer x.example --client-id c", 2, "https"],
    ["add --kind oidc --name x --issuer http://x.example --client-id c", 2, "https"],
    ["add --kind oauth2 --name x --issuer x --client-id c --auth-url ftp://x.example", 2, "https"],
    ["add --kind oidc --name one --issuer https://x.example --client-id c", 1, "already"],
    ["add --kind oidc --name Capital --issuer https://x.example --client-id c", 2, "lower-case letters"],
    ["remove nobody", 1, "does not exist"],
    ["disable", 2, "Specify the name of a provider"],
  ])("%s fails with a message and exit code %i", async (line, exitCode, words) => {
    const { stderr, code } = await run(line);
    expect(code).toBe(exitCode);
    expect(stderr).toContain(words);
    expect(stderr).not.toMatch(/^ +at /m);
  });
});
