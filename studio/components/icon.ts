import { html } from "../html.ts";

/** The outlines of the icons on a grid of 16. */
const OUTLINES = {
  activity: "M1.5 8h3l2-5 3.5 10 2-5h2.5",
  branch:
    "M4 5.5v5M5.5 4A1.5 1.5 0 1 1 2.5 4a1.5 1.5 0 0 1 3 0zM5.5 12a1.5 1.5 0 1 1-3 0 1.5 1.5 0 0 1 3 0zM13.5 5a1.5 1.5 0 1 1-3 0 1.5 1.5 0 0 1 3 0zM12 6.5c0 3-5 2-8 4",
  check: "M3 8.5l3.5 3.5L13 4.5",
  "chevron-down": "M4 6l4 4 4-4",
  "chevron-right": "M6 4l4 4-4 4",
  clock: "M8 4.5V8l2.5 1.5M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0z",
  close: "M4 4l8 8M12 4l-8 8",
  column: "M2.5 3h11v10h-11zM6 3v10M10 3v10",
  contrast: "M8 2v12a6 6 0 0 0 0-12zM14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0z",
  copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z",
  diagram: "M2 2.5h5v4H2zM9 9.5h5v4H9zM4.5 6.5v5H9",
  download: "M8 2v8M4.5 7L8 10.5 11.5 7M2.5 13.5h11",
  edit: "M3 13l.5-3L10.5 3l2.5 2.5L6 12.5z",
  external: "M9 2.5h4.5V7M13.5 2.5L7.5 8.5M11.5 9v4.5h-9v-9H7",
  eye: "M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8zM10 8a2 2 0 1 1-4 0 2 2 0 0 1 4 0z",
  filter: "M2 3.5h12L9.5 9v4l-3-1.5V9z",
  folder: "M2 3.5h4.5l1.5 2h6v7.5H2z",
  function: "M11.5 3c-2 0-2.5 1-3 3l-1 4.5c-.5 2-1 2.5-2.5 2.5M5.5 7h5.5",
  help: "M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0zM6.2 6.3a1.8 1.8 0 1 1 2.6 1.6c-.5.3-.8.6-.8 1.2M8 11.3v.01",
  key: "M7.5 8.5l6-6M11 5l2 2M7.5 11a2.5 2.5 0 1 1-5 0 2.5 2.5 0 0 1 5 0z",
  link: "M6.5 9.5l3-3M7.5 4.5l1-1a2.8 2.8 0 0 1 4 4l-1 1M8.5 11.5l-1 1a2.8 2.8 0 0 1-4-4l1-1",
  menu: "M2 4h12M2 8h12M2 12h12",
  minus: "M3 8h10",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  people:
    "M6 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM1.5 13.5c0-2.5 2-4 4.5-4s4.5 1.5 4.5 4M10.5 3.2a2.5 2.5 0 0 1 0 4.6M12 9.8c1.5.6 2.5 1.9 2.5 3.7",
  person: "M8 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2.5 14c0-3 2.5-4.5 5.5-4.5s5.5 1.5 5.5 4.5",
  play: "M4.5 2.5l8.5 5.5-8.5 5.5z",
  plus: "M8 3v10M3 8h10",
  refresh: "M13.5 8a5.5 5.5 0 1 1-1.7-4M13.5 2v3h-3",
  search: "M11 7a4 4 0 1 1-8 0 4 4 0 0 1 8 0zM10 10l4 4",
  settings:
    "M2 4.5h7M12 4.5h2M2 11.5h2M7 11.5h7M12 4.5a1.5 1.5 0 1 1-3 0 1.5 1.5 0 0 1 3 0zM7 11.5a1.5 1.5 0 1 1-3 0 1.5 1.5 0 0 1 3 0z",
  shield: "M8 1.5l5.5 2v4c0 3.5-2.3 5.8-5.5 7-3.2-1.2-5.5-3.5-5.5-7v-4z",
  sort: "M5 3v10M2.5 10.5L5 13l2.5-2.5M11 13V3M8.5 5.5L11 3l2.5 2.5",
  stop: "M3.5 3.5h9v9h-9z",
  table: "M2 3h12v10H2zM2 6.5h12M2 10h12M6.5 6.5V13",
  terminal: "M2 3h12v10H2zM4.5 6l2 2-2 2M8 10h3.5",
  trash: "M2.5 4.5h11M6 4.5v-2h4v2M4 4.5l.6 9h6.8l.6-9M6.7 7v4M9.3 7v4",
  undo: "M6 3L2.5 6.5 6 10M2.5 6.5H10a3.5 3.5 0 0 1 0 7H7",
  upload: "M8 10.5v-8M4.5 6L8 2.5 11.5 6M2.5 13.5h11",
  warning: "M8 2l6.5 11.5h-13zM8 6.5v3M8 11.5v.01",
} as const;

export type IconName = keyof typeof OUTLINES;

/** A decorative icon: the control around it has a text label. */
export function Icon({ name }: { name: IconName }) {
  return html`
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d=${OUTLINES[name]} />
    </svg>
  `;
}
