"""Answers about periods of a question with a schedule.

periods   which periods a request asks for, and which ones an answer is about
trend     the same question for each period
copies    what the reports of several periods show of copies
compare   two periods, spans or collections
crowds    the reports of a period, with intervals that hold at any number of reports
change    did it change? With an error rate that holds however often one looks
"""
