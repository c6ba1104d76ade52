import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { useDatabase } from "../database.ts";
import { useFixture, useFolder } from "../fixture.ts";
import { REPOSITORY } from "../repository.ts";
import { openBrowser } from "../rest-gateway/sign-in/browser.ts";
import { CLIENT, openOpenIdProvider } from "../rest-gateway/sign-in/openid-provider.ts";
import { useService } from "../serve.ts";
import { ADDRESS } from "./five-minutes.ts";
import { inClone } from "./in-clone.ts";
import { openTerminal } from "./terminal.ts";
import { isAsPublished } from "./tutorial.ts";

const SITE = "https://service.example.org";
const BLOCK = /^```(sh|json)\n(.*?)^```$/gms;

const secretFile = join(useFolder("content-service-secret-"), "secret.txt");
const provider = useFixture(() => openOpenIdProvider([SITE]));
const database = useDatabase();
const service = useService({
  database,
  settings: { PUBLIC_URL: SITE, SIGN_IN_REDIRECTS: "https://app.example.com/in" },
});

test("a sign-in by a provider goes as the page shows", async () => {
  const page = await readFile(join(REPOSITORY, "docs/federation.md"), "utf8");
  await writeFile(secretFile, CLIENT.secret);
  const terminal = openTerminal({ folder: REPOSITORY, environment: inClone(database) });
  try {
    let [commands, output, responses] = ["", "", 0];
    for (const [, language, text] of page.matchAll(BLOCK)) {
      if (language === "json") {
        const step = { commands, output, expected: text!, isJson: true };
        expect([step].filter((each) => !isAsPublished(each))).toEqual([]);
        responses++;
        continue;
      }
      if (text!.includes("$CODE")) {
        const start = output.trim().replace(service.url, SITE);
        const shown = await provider.signIn(openBrowser({ hosts: { [SITE]: service.url } }), start, "ada");
        await terminal.run(`CODE=${shown.url.searchParams.get("code")}`);
      }
      commands = text!
        .replaceAll(ADDRESS, service.url)
        .replace("https://id.example.com", provider.issuer)
        .replace("secret.txt", secretFile);
      ({ output } = await terminal.run(commands));
    }
    expect(responses).toBe(2);
  } finally {
    await terminal.close();
  }
});
