"""What `credence replay --help` says before and after the options."""

from __future__ import annotations

DESCRIPTION = """\
Assess recorded predictions offline: label them one by one as a policy wishes, in many independent runs, and
measure how well the method knows the truth after so many labels. Nothing is needed but the file.

FILE is .npz (probabilities [N, K], labels [N]), .csv or .txt (true_class score_0 ... score_K-1 a row), or
.parquet; or the word `digits`: two classifiers of the handwritten digits that scikit-learn brings along, with
--task ensemble three. With --task ensemble all files are members of one ensemble, with --task challenge there
are two, the champion first; else each is by itself. With --task annotators a file has predicted [N] and
answers [N, people]. What is concluded comes first.
"""

EPILOG = """\
Methods are PRIOR+POLICY. Without --prior and --policy Credence's own are compared (learned+random and
learned+thompson), with --paper or --json also UPrior (uniform+random), IPrior (informed+random) and IPrior+TS
(informed+thompson) of the paper behind the method. Otherwise all combinations of those given.

examples:
  credence replay FILE --fault region=r3 --drop 0.14       days until a fault of one region is found
  credence replay digits                                   groupwise accuracy, by number of labels
  credence replay digits --task identification --runs 50   labels until the least accurate class is found
  credence replay FILE --task identification --metric calibration --top-m 3 --plots figures
  credence replay FILE --task performance --jobs 4         precision-recall curves from few labels
  credence replay FILE --task performance --policy adaptive     the same, labels where they tell most
  credence replay A.npz B.npz C.npz --task ensemble        members of an ensemble, with labels that they share
  credence replay OLD.npz NEW.npz --task challenge         labels until it is known which is better
  credence replay FILE --task certificate --threshold 0.9  labels until every group is shown to reach 90%
  credence replay FILE --task rates --group-by region      labels until groups differ in their error rates
  credence replay ANSWERS.npz --task annotators            accuracy from the answers of people who err
  credence replay ANSWERS.npz --task annotators --skipped 0.2   the same if hard items get no answer
"""
