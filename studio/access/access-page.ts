import { PageHeader } from "../components/page.ts";
import { Tabs } from "../components/tabs.ts";
import { html } from "../html.ts";
import { useSearchParameter } from "../router.ts";
import { texts } from "../texts.ts";
import { Findings } from "./findings.ts";
import { PolicyMatrix } from "./policy-matrix.ts";
import { Why } from "./why.ts";

const TABS = [
  { name: "policies", title: texts.access.tabs.policies, content: PolicyMatrix },
  { name: "why", title: texts.access.tabs.why, content: Why },
  { name: "doctor", title: texts.access.tabs.doctor, content: Findings },
];

/** The page of privileges and policies, and of their explanations. */
export function AccessPage() {
  const [name, setName] = useSearchParameter("tab");
  const { name: current, content } = TABS.find((tab) => tab.name === name) ?? TABS[0]!;
  return html`
    <${PageHeader} title=${texts.access.title} />
    <${Tabs} label=${texts.access.title} tabs=${TABS} current=${current} onChange=${(chosen: string) => setName(chosen)}>
      <div class="page-body stack"><${content} /></div>
    <//>
  `;
}
