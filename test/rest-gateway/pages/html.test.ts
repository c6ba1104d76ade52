import { expect, test } from "vitest";
import { html } from "../../../rest-gateway/pages/page.ts";

test("text is escaped, in elements and in attributes; markup stays as it is", () => {
  const evil = `"><script>alert('&')</script>`;
  const escaped = "&quot;&gt;&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;";
  expect(html`<a title="${evil}">${evil}</a>`.text).toBe(`<a title="${escaped}">${escaped}</a>`);
  const items = ["a", "<"].map((item) => html`<li>${item}</li>`);
  expect(html`<ul>${items}</ul>${null}${undefined}${7}`.text).toBe("<ul><li>a</li><li>&lt;</li></ul>7");
});
