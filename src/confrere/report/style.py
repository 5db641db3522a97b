"""The style sheet: light and dark, phone and paper.

Colours after Okabe and Ito, darker or lighter where contrast needs it.
"""

STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1b1f24; --soft: #4d5661; --line: #d5dae0; --tint: #f3f5f8;
  --link: #00558a; --one: #0072b2; --two: #00795a; --three: #c24e00; --four: #a3487d; --five: #8a6100; --six: #3f4a56;
  --yes: #00624a; --no: #a33c00; --open: #4d5661; --shadow: #1b1f2438; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181d; --ink: #e8ebef; --soft: #aab4bf; --line: #39424d;
  --tint: #1e242b; --link: #7cc4f2; --one: #56b4e9; --two: #33c79d; --three: #f0a04b; --four: #dd9cc0; --five: #f0e442;
  --six: #c3ccd6; --yes: #5fd6b2; --no: #f5a97f; --open: #aab4bf; --shadow: #e8ebef45; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 68rem; padding: 1.5rem 1rem 3rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .6rem; }
h2 { font-size: 1.35rem; line-height: 1.25; margin: 2.2rem 0 .6rem; }
h3 { font-size: 1.12rem; line-height: 1.3; margin: 2rem 0 .5rem; }
p, ul { max-width: 46rem; margin: .5rem 0; } ul { padding-left: 1.2rem; }
a { color: var(--link); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
.lead { color: var(--soft); }
.answer { font-weight: 600; }
.small, figcaption, footer { color: var(--soft); font-size: .875rem; line-height: 1.45; }
.note { border-left: .25rem solid var(--no); padding-left: .7rem; }
nav ul { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .3rem 1rem; }
.badge { display: inline-block; border: 1.5px solid currentColor; border-radius: 1rem; padding: 0 .6rem;
  font-size: .85rem; font-weight: 600; white-space: nowrap; color: var(--open); }
.badge.yes { color: var(--yes); } .badge.no { color: var(--no); }
.table { margin: 1rem 0; }
/* Shadows at the edges where a table goes on: covers of paper scroll with it, and lie over them at either end. */
.scroll { overflow-x: auto; max-width: 100%; background:
  linear-gradient(to right, var(--paper) 40%, transparent) left / 3rem 100% no-repeat local,
  linear-gradient(to left, var(--paper) 40%, transparent) right / 3rem 100% no-repeat local,
  linear-gradient(to right, var(--shadow), transparent) left / 1.2rem 100% no-repeat scroll,
  linear-gradient(to left, var(--shadow), transparent) right / 1.2rem 100% no-repeat scroll; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top; }
th { font-weight: 600; } tbody th { font-weight: 400; }
th:first-child, td:first-child, .reasons :is(th, td):nth-child(2) { text-align: left; }
td:has(.own) { color: var(--soft); }
th, td { white-space: nowrap; } .words { white-space: normal; min-width: 6rem; }
thead .left { text-align: left; } tbody .words { text-align: left; min-width: 11rem; overflow-wrap: anywhere; }
pre { overflow: auto; max-height: 24rem; background: var(--tint); padding: .8rem; font-size: .8rem;
  border-radius: .4rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 21rem), 1fr)); gap: 1.2rem 2.2rem;
  margin: 1rem 0; align-items: start; }
.plots > * { min-width: 0; } .plots table { font-size: .85rem; } .plots th, .plots td { padding-right: .45rem; }
.plots:has(> .table) { display: flex; flex-wrap: wrap; }
.plots:has(> .table) > figure { flex: 1 1 21rem; } .plots > .table { flex: 0 1 auto; max-width: 100%; }
.plots .table { margin-top: 0; } .plots tbody th { white-space: normal; min-width: 4rem; }
figure { margin: 0; max-width: 30rem; break-inside: avoid; }
.figure-title { font-weight: 600; margin: 0 0 .3rem; font-size: .95rem; }
figcaption { margin-top: .3rem; }
svg { display: block; width: 100%; height: auto; font-size: 12px; font-family: inherit; }
svg text { fill: var(--ink); paint-order: stroke; stroke: var(--paper); stroke-width: 3px; stroke-linejoin: round; }
svg .tick, svg .unit { fill: var(--soft); font-size: 11px; } svg .own { fill: var(--two); }
.grid { stroke: var(--line); stroke-width: 1; } .zero { stroke: var(--ink); stroke-width: 1.2; }
.diagonal { stroke: var(--soft); stroke-width: 1.2; stroke-dasharray: 4 4; }
.ring { fill: none; stroke: var(--line); } .ring.limit { stroke: var(--soft); stroke-dasharray: 4 4; }
.joint { stroke: var(--soft); stroke-width: 1.5; }
.whisker { stroke-width: 2; } .curve { fill: none; stroke-width: 2; }
.curve.level { stroke-dasharray: 6 4; } .curve.level.two { stroke-dashoffset: 5; }
.one { --shade: var(--one); } .two { --shade: var(--two); } .three { --shade: var(--three); }
.four { --shade: var(--four); } .five { --shade: var(--five); } .six { --shade: var(--six); }
.none { --shade: var(--soft); }
.mark, .bar, .dot { fill: var(--shade); } .mark { stroke: var(--paper); stroke-width: 1; }
.bar.none { fill-opacity: .45; } .dot { fill-opacity: .75; stroke: var(--shade); }
.bar.flagged, .dot.flagged { fill-opacity: .15; stroke: var(--shade); stroke-width: 1.5; stroke-dasharray: 3 2; }
.whisker, .curve { stroke: var(--shade); }
.cloud { fill: var(--shade); fill-opacity: .13; stroke: var(--shade); stroke-opacity: .65; stroke-width: 1.2; }
td:has(.heat) { padding: .35rem .5rem; border-left: 2px solid var(--paper); white-space: normal; min-width: 8rem; }
td:has(.h1) { background: color-mix(in srgb, var(--one) 6%, var(--paper)); }
td:has(.h2) { background: color-mix(in srgb, var(--one) 16%, var(--paper)); }
td:has(.h3) { background: color-mix(in srgb, var(--one) 27%, var(--paper)); }
td:has(.h4) { background: color-mix(in srgb, var(--one) 38%, var(--paper)); }
tr:has(.heat) > th { white-space: normal; min-width: 11rem; text-align: left; }
details { margin: 1rem 0; } summary { cursor: pointer; } details > summary:not(:has(h2)) { color: var(--link); }
details.hospital { border-top: 2px solid var(--line); padding-top: .4rem; }
details.hospital > summary { display: flex; flex-wrap: wrap; align-items: center; gap: .3rem .8rem; padding: .4rem 0; }
details.hospital > summary::before { content: "\\25B8"; color: var(--soft); }
details.hospital[open] > summary::before { content: "\\25BE"; }
details.hospital > summary::-webkit-details-marker { display: none; }
details.hospital h2 { margin: 0; }
@media print {
  :root { --paper: #ffffff; --ink: #000000; --soft: #3c434b; --line: #c4cad1; --tint: #f3f5f8; --link: #000000;
    --one: #0072b2; --two: #00795a; --three: #c24e00; --four: #a3487d; --five: #8a6100; --six: #3f4a56;
    --yes: #00624a; --no: #a33c00; --open: #3c434b; color-scheme: light; }
  html { font-size: 10pt; } body { max-width: none; padding: 0; }
  nav { display: none; } .scroll { overflow: visible; background: none; }
  pre { max-height: none; white-space: pre-wrap; }
  details:not([open])::details-content { content-visibility: visible; display: block; block-size: auto; }
  summary::before { content: none !important; }
  h2, h3, .figure-title { break-after: avoid; } tr, figure { break-inside: avoid; }
  table { font-size: 8pt; } figure { max-width: 8.5cm; }
}
"""
