import { deploymentKeys } from "../engine/caller/deployment-keys.ts";
import { signToken } from "../engine/caller/tokens.ts";
import { runCommand, UsageError } from "./command.ts";

await runCommand({
  usage: "npm run keys   prints this deployment's two API keys",
  async run(config, words) {
    if (words.length > 0) throw new UsageError(`"${words[0]}" is not something that npm run keys does.`);
    const keys = await deploymentKeys(config);
    // Without a time of issue a role's key is always the same text, so it can be printed again at any time.
    const keyOf = (role: string) => signToken({ iss: config.jwtIssuer, role }, keys, { timestamp: false });
    console.log(`anon key (for clients; row-level policies bound what it reaches):
${keyOf(config.anonRole)}

service_role key (bypasses policies; for servers only, keep it secret):
${keyOf("service_role")}`);
  },
});
